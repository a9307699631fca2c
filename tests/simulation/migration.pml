/*
 * The phase protocol of a migration (docs/adr/0021, 0071, 0074): N members, one key, checked exhaustively by spin.
 *
 * The state has `current`, the one single phase that may be in use besides `both`, the written `target`, and
 * a version that changes with either. A member writes its record (the version that it goes by, and whether it is
 * drained of locks that stand in the way), reads the rules in the same step, takes locks in `current` where that is
 * its target, too, and in `both` otherwise. A member may also read all records. If it saw that all members go by the
 * present version and are drained, or have been silent for so long that none of their locks in a single phase can live,
 * it makes the target the current phase, if the version is still the one that it has read. Any member may do so at any
 * time: that one of them watches for all is not needed.
 *
 * Versions are only ever compared with the present one, so a flag stands for each ("upToDate"), and the operator may
 * change his mind without end. Time is not modelled, only what clocks guarantee:
 *  - a member may lose its lease on single phases at any moment (it is frozen, or the state is out of reach);
 *  - a record may disappear at any moment: the clock of the store that keeps it may jump. A member that has seen it
 *    remembers it, and one that has not seen it waits by its own clock until those that it cannot know are silent;
 *  - a process may end at any moment, and another one joins in its place, also between a reading of the state and the
 *    commit that follows it;
 *  - any lock may end at any moment; its holder knows that before the store gives the key to others.
 *
 * Each guard can be taken out, and then there must be two holders: -DNO_ACKNOWLEDGEMENT, -DNO_DRAIN, -DNO_BRIDGE,
 * -DNO_LEASE, -DNO_CONFIRMATION, -DNO_OWN_CLOCK (a member without a record counts as none). The comparison of the set of
 * members in a commit is not modelled: the model holds without it.
 */

#define LEGACY 0
#define BOTH 1
#define MODERN 2
#define NOBODY 3

#ifndef N
#define N 3
#endif

/* Where a member is with its one lock. */
#define IDLE 0
#define CHOSEN 1  /* its phase is chosen, nothing is sent */
#define HALF 2    /* `both`: the old store has granted */
#define GRANTED 3 /* all stores have granted; not yet confirmed */
#define HELD 4

unsigned current : 2 = LEGACY;
unsigned target : 2 = LEGACY;
unsigned oldStore : 2 = NOBODY;
unsigned newStore : 2 = NOBODY;

typedef Member {
#ifdef NO_OWN_CLOCK
  bool listed;        /* its record is in the state: nothing else depends on that */
#endif
  bool ready;         /* its last record says that it goes by the present version and is drained */
  bool upToDate;      /* it goes by the present version */
  bool mayCommit;     /* it saw all members ready, and the version is still the same */
  bool leased;
  unsigned rule : 2;  /* the phase in which it takes locks while leased */
  unsigned work : 3;
  unsigned phase : 2;
  bool inLease;       /* its lease has run without a gap from the choice of the phase to the request */
};
Member m[N];

inline changed() {
  for (k : 0 .. N - 1) {
    m[k].mayCommit = false; m[k].upToDate = false;
#ifndef NO_ACKNOWLEDGEMENT
    m[k].ready = false
#endif
  }
  k = 0
}

#ifdef NO_ACKNOWLEDGEMENT
#define acknowledged(i) true
#else
#define acknowledged(i) m[i].upToDate
#endif
#ifdef NO_DRAIN
#define drained(i) true
#else
#define drained(i) (m[i].work == IDLE || m[i].phase == BOTH || m[i].phase == target)
#endif
#ifdef NO_BRIDGE
#define bridge target
#else
#define bridge BOTH
#endif

/* Its own clock tells whoever waits for it: its lease has ended, and all that was taken in it. */
#define over(i) (!m[i].leased && !m[i].inLease && !(m[i].work == HELD && m[i].phase != BOTH))
#ifdef NO_OWN_CLOCK
#define inTheWay(i) (m[i].listed && !m[i].ready)
#else
#define inTheWay(i) (!m[i].ready && !over(i))
#endif

inline pin(i) {
#ifdef NO_OWN_CLOCK
  m[i].listed = true;
#endif
  m[i].ready = acknowledged(i) && drained(i);
  m[i].upToDate = true;
  m[i].leased = true;
  m[i].rule = (current == target -> current : bridge)
}

inline readAll(i) {
  m[i].mayCommit = true;
  for (k : 0 .. N - 1) {
    if
    :: inTheWay(k) -> m[i].mayCommit = false
    :: else
    fi
  }
  k = 0
}

inline choosePhase(i) {
  m[i].work = CHOSEN;
#ifdef NO_LEASE
  m[i].phase = m[i].rule; m[i].inLease = (m[i].rule != BOTH)
#else
  m[i].phase = (m[i].leased -> m[i].rule : BOTH);
  m[i].inLease = (m[i].phase != BOTH)
#endif
}

/* Gives back what the stores have granted, and forgets it. */
inline dropLock(i) {
  if :: oldStore == i -> oldStore = NOBODY :: else fi;
  if :: newStore == i -> newStore = NOBODY :: else fi;
  m[i].work = IDLE; m[i].phase = BOTH; m[i].inLease = false
}

#ifdef NO_CONFIRMATION
#define confirmed(i) true
#else
#define confirmed(i) (m[i].phase == BOTH || m[i].inLease)
#endif

hidden byte k;

active [N] proctype member() {
  m[_pid].rule = BOTH; m[_pid].phase = BOTH;
  do
  :: d_step { true -> pin(_pid) }
  :: d_step { current != target -> readAll(_pid) }
  :: d_step { m[_pid].mayCommit -> current = target; changed() }

  /* ---- its clock ---- */
  :: d_step { m[_pid].leased ->
       m[_pid].leased = false;
#ifndef NO_LEASE
       m[_pid].rule = BOTH;
       if :: m[_pid].work == CHOSEN -> m[_pid].inLease = false :: else fi
#endif
     }
#ifdef NO_OWN_CLOCK
  /* ---- its record disappears ---- */
  :: d_step { m[_pid].listed -> m[_pid].listed = false }
#endif
  /* ---- another process in its place ---- */
  :: d_step { !m[_pid].leased && m[_pid].work == IDLE && m[_pid].upToDate ->
       m[_pid].ready = false; m[_pid].upToDate = false; m[_pid].mayCommit = false;
#ifndef NO_LEASE
       m[_pid].rule = BOTH
#endif
     }

  /* ---- its lock ---- */
  :: d_step { m[_pid].work == IDLE -> choosePhase(_pid) }
  :: d_step { m[_pid].work == CHOSEN && m[_pid].phase != MODERN ->
       if
       :: oldStore == NOBODY ->
            oldStore = _pid; m[_pid].work = (m[_pid].phase == BOTH -> HALF : GRANTED)
       :: else -> dropLock(_pid)
       fi }
  :: d_step { (m[_pid].work == CHOSEN && m[_pid].phase == MODERN) || m[_pid].work == HALF ->
       if
       :: newStore == NOBODY -> newStore = _pid; m[_pid].work = GRANTED
       :: else -> dropLock(_pid)
       fi }
  :: d_step { m[_pid].work == GRANTED ->
       if
       :: confirmed(_pid) ->
            m[_pid].work = HELD; m[_pid].inLease = false;
            for (k : 0 .. N - 1) { assert(k == _pid || m[k].work != HELD) }
            k = 0
       :: else -> dropLock(_pid)
       fi }
  /* It releases, its lease ends, or it is killed, at any point: then the stores free the key. */
  :: d_step { m[_pid].work != IDLE -> dropLock(_pid) }
  od
}

active proctype operator() {
  do
  :: d_step { target != LEGACY -> target = LEGACY; changed() }
  :: d_step { target != BOTH -> target = BOTH; changed() }
  :: d_step { target != MODERN -> target = MODERN; changed() }
  od
}
