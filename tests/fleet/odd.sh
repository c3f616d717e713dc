#!/bin/sh
# Starts a command as a rank; on the ranks of node n3 (or those in ODD_RANKS) with the variable in ODD.
rank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}
if [ -n "$OMPI_COMM_WORLD_RANK" ]; then
    ENVLOCK_FLEET_NODE=n$((rank / 2 + 1))
    export ENVLOCK_FLEET_NODE
fi
case " ${ODD_RANKS:-4 5} " in
*" $rank "*)
    [ -z "$ODD" ] || export "${ODD?}"
    [ -z "$ODD_COMMAND" ] || exec sh -c "$ODD_COMMAND"
    ;;
esac
exec "$@"
