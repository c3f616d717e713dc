import hyperopt
import numpy as np
import optuna

np.random.seed(1)
space = {"rate": hyperopt.hp.uniform("rate", 0, 1)}
best = hyperopt.fmin(abs, space, max_evals=3)  # expect: ENV205
again = hyperopt.fmin(abs, space, max_evals=3, rstate=np.random.default_rng(1))
study = optuna.create_study()
study.optimize(abs)
same = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
same.optimize(abs)
other = optuna.create_study(sampler=optuna.samplers.TPESampler())
other.optimize(abs)
np.save("best", [best, again])
