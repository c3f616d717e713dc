import numpy as np
from mpi4py import MPI

packet = np.empty(10)
MPI.COMM_WORLD.Recv(packet, source=0)
np.save("packet", packet)
