#!/bin/sh
# Starts a command as a rank; on the ranks of node n3 (or those in ODD_RANKS) with the variable in ODD.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}
if [ -z "$SLURM_PROCID" ]; then
    export ENVLOCK_FLEET_NODE="n$((rank / 2 + 1))"
    [ -z "$PMI_RANK" ] || export ENVLOCK_FLEET_JOB="${ENVLOCK_FLEET_JOB:-mpich}" # it names none
fi
case " ${ODD_RANKS:-4 5} " in
*" $rank "*)
    [ -z "$ODD" ] || export "${ODD?}"
    [ -z "$ODD_COMMAND" ] || exec sh -c "$ODD_COMMAND"
    ;;
esac
exec "$@"
