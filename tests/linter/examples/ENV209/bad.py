import gym
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
env = gym.make("CartPole-v1")  # expect: ENV209
state = env.reset()
np.save("state", state)
