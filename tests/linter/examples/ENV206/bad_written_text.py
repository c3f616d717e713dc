"""The same, of texts that are made of each."""
import random

numbers = list(range(10))
random.shuffle(numbers)  # expect: ENV206
with open("numbers.txt", "w") as file:
    for number in numbers:
        file.write(str(number))
