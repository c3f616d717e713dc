import time

import jax

key = jax.random.PRNGKey(int(time.time() * 1e6))  # expect: ENV207
