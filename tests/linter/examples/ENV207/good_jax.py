import time

import jax

key = jax.random.PRNGKey(7)
began = time.time()
