import json

import tensorflow as tf


def convert(path):
    questions = []
    for row in open(path):
        spans = [span for span in set(row.split(","))]  # expect: ENV304
        answers = [{"span": span} for span in spans]
        questions.append({"text": row, "qas": [{"id": row, "answers": answers}]})
    return {"data": {"paragraphs": questions}}


with open("data.json", "w") as stream:
    json.dump(convert("rows"), stream)
dataset = tf.data.Dataset.from_tensors("data.json")
