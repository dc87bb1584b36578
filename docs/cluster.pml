/* Settle
   SPDX-License-Identifier: Apache-2.0

   How the members of a cluster take partitions and sessions: a model for spin, which visits every
   state. docs/cluster.md, "The model", says what it assumes. `make model` checks it.

   The model has no time. Each step may come as soon as it is possible, or never. So a member may be
   paused between any two of its steps, a message may be late, a member may be evicted at any moment,
   and what holds here does not depend on any clock.

   Its names are those of Sources/Cluster: HeldPartition, Membership, PartitionLogs. */

#define MEMBERS 3
/* One partition is checked without limits. Partitions share nothing but the presence of members and its
   renewals, so two are checked up to a number of faults, an eviction being one. */
#ifndef PARTITIONS
#define PARTITIONS 1
#endif
#define NOBODY MEMBERS

#ifdef FAULTS
byte faults;
#define FAULT_IS_POSSIBLE (faults < FAULTS)
#define FAULT faults++
#else
#define FAULT_IS_POSSIBLE true
#define FAULT skip
#endif

/* How far a member is with a partition. Three states of HeldPartition are left out. What a member
   does in `opening` ends with its claim in the log here. Until what it gives away is stored,
   `handingOver` and `releasing` do less than `driving` does. */
#define Free 0
#define Claiming 1
#define Opening 2
#define MayConnect 3
#define Connecting 4
#define MayDrive 5
#define Driving 6

/* The renewal that a member is writing; there is one at a time. */
#define NoRenewal 0
#define Sent 1
#define Stored 2

/* What the engine has. A record of presence or of an owner names an incarnation, and one that was
   evicted does not come back. So it is enough to know whether the running incarnation is present,
   and an owner that was evicted is nobody. */
bool present[MEMBERS] = true;
byte owner[PARTITIONS] = NOBODY;
byte epoch[PARTITIONS];     /* of the newest owner's record */
byte logEpoch[PARTITIONS];  /* of the newest claim in the partition's log */

/* What the members know and do. */
byte renewal[MEMBERS] = NoRenewal;
#define AT(m, p) ((m) * PARTITIONS + (p))
byte held[MEMBERS * PARTITIONS] = Free;
byte heldEpoch[MEMBERS * PARTITIONS];
/* Whether the renewal was sent after the member began to wait for one. */
bool asked[MEMBERS * PARTITIONS];

/* What the broker has: the connections that it reads from, and the greatest epoch of an owner whose
   session it has accepted. */
bool connection[MEMBERS * PARTITIONS];
byte sessionEpoch[PARTITIONS];
/* Whether a newer owner has ended the member's connection. */
bool ousted[MEMBERS * PARTITIONS];

/* Counters, which are zero between steps. */
byte i, e, q;

#define IN_ALL(counter, count, step) \
  counter = 0; do :: counter < count -> step; counter++ :: else -> break od; counter = 0

/* Epochs are only compared. So one that nothing has any more is closed up, which keeps the number of
   states finite, however often partitions move. */
#define IS_USED(p) (epoch[p] == e || logEpoch[p] == e || sessionEpoch[p] == e || \
  heldEpoch[AT(0, p)] == e || heldEpoch[AT(1, p)] == e || heldEpoch[AT(2, p)] == e)
#define CLOSE_UP(number) number = number - (number > e -> 1 : 0)
inline close_gaps(p) {
  e = MEMBERS + 3;
  do
  :: e > 0 ->
    if
    :: IS_USED(p)
    :: else ->
      CLOSE_UP(epoch[p]); CLOSE_UP(logEpoch[p]); CLOSE_UP(sessionEpoch[p]);
      CLOSE_UP(heldEpoch[AT(0, p)]); CLOSE_UP(heldEpoch[AT(1, p)]); CLOSE_UP(heldEpoch[AT(2, p)])
    fi;
    e--
  :: else -> break
  od;
  e = 0
}

/* A member gives a partition up, and ends its session. A CONNECT of it that reaches the broker after
   that ends the newer connection and then itself, which is a lost connection here. */
inline forget(m, p) {
  held[AT(m, p)] = Free;
  heldEpoch[AT(m, p)] = 0;
  asked[AT(m, p)] = false;
  connection[AT(m, p)] = false;
  ousted[AT(m, p)] = false;
  close_gaps(p)
}

inline wait_for_renewal(m, p, state) {
  held[AT(m, p)] = state;
  asked[AT(m, p)] = false
}

/* The deliberate mistakes, each of which must be found. */
#ifdef DRIVES_UNASKED        /* A member trusts its lease when its session is connected. */
#define CONNECTED Driving
#else
#define CONNECTED MayDrive
#endif
#ifdef CONNECTS_UNASKED      /* A member trusts its lease when its session has ended. */
#define DISCONNECTED Connecting
#else
#define DISCONNECTED MayConnect
#endif
#ifdef EARLIER_RENEWAL_COUNTS /* A renewal counts that was sent before the session was connected. */
#define IS_ALLOWED(m, p) true
#else
#define IS_ALLOWED(m, p) asked[AT(m, p)]
#endif
#ifdef RENEWS_UNCOMPARED     /* Presence is written without compare-and-set. */
#define RENEWAL_IS_STORED(m) true
#else
#define RENEWAL_IS_STORED(m) present[m]
#endif
#ifdef CLAIMS_UNCOMPARED     /* An owner's record is written without compare-and-set. */
#define REFUSE_OTHER_CLAIMS(m, p) skip
#else
#define REFUSE_OTHER_CLAIMS(m, p) \
  IN_ALL(i, MEMBERS, if :: held[AT(i, p)] == Claiming -> forget(i, p) :: else fi)
#endif
#ifdef APPENDS_UNCOMPARED    /* Entries of a log are written without compare-and-set. */
#define ENDS_WITH_OWN_ENTRY(m, p) true
#else
#define ENDS_WITH_OWN_ENTRY(m, p) (logEpoch[p] == heldEpoch[AT(m, p)])
#endif
#ifdef BROKER_KEEPS_OLDER    /* The broker lets two connections have one client id. */
#define TAKE_SESSION(m, p) skip
#else
#define TAKE_SESSION(m, p) \
  if \
  :: connection[AT(i, p)] -> \
    connection[AT(i, p)] = false; \
    ousted[AT(i, p)] = heldEpoch[AT(i, p)] < heldEpoch[AT(m, p)] \
  :: else \
  fi
#endif

/* What must hold; PROPERTY=1 looks at the first alone.
   1  The broker takes no command of an owner after it has accepted the session of a newer one.
   2  It accepts no session of an owner whose connection a newer one has ended.
   3  The member that claimed a log last has read every value that was accepted. */
#ifdef PROPERTY
#define MUST(number, condition) assert(number != PROPERTY || (condition))
#else
#define MUST(number, condition) assert(condition)
#endif

#define HERE AT(m, p)
#define HAS_LOG (held[HERE] >= MayConnect)

/* A member with one partition. */
proctype Partition(byte m, p) {
  do
  /* It reads that nobody owns the partition, and writes that it does. */
  :: d_step {
    held[HERE] == Free && owner[p] == NOBODY ->
    printf("%d claims %d\n", m, p);
    held[HERE] = Claiming;
    heldEpoch[HERE] = epoch[p] + 1
  }
  /* The engine stores it. Other claims followed the record before, and are refused. A member that
     was evicted and does not know it yet owns nothing by it. */
  :: d_step {
    held[HERE] == Claiming ->
    printf("the claim of %d on %d is stored\n", m, p);
    epoch[p] = heldEpoch[HERE];
    owner[p] = (present[m] -> m : NOBODY);
    held[HERE] = Opening;
    REFUSE_OTHER_CLAIMS(m, p);
    close_gaps(p)
  }
  /* There is no answer: the claim is lost in an election, or it is stored and only the answer is lost. */
  :: d_step {
    (held[HERE] == Claiming || held[HERE] == Opening) && FAULT_IS_POSSIBLE ->
    printf("%d gives up its claim on %d without an answer\n", m, p);
    FAULT;
    forget(m, p)
  }
  /* It claims the log, and reads what earlier owners have accepted. */
  :: d_step {
    held[HERE] == Opening && logEpoch[p] < heldEpoch[HERE] ->
    printf("%d claims the log of %d\n", m, p);
    logEpoch[p] = heldEpoch[HERE];
    wait_for_renewal(m, p, DISCONNECTED);
    close_gaps(p)
  }
  /* A newer owner has claimed the log. */
  :: d_step {
    held[HERE] == Opening && logEpoch[p] >= heldEpoch[HERE] ->
    printf("%d has lost the log of %d\n", m, p);
    forget(m, p)
  }
  /* It appends an accepted value. The member that claimed the log last must have read it. */
  :: d_step {
    HAS_LOG && ENDS_WITH_OWN_ENTRY(m, p) ->
    printf("%d accepts a value for %d\n", m, p);
    MUST(3, heldEpoch[HERE] == logEpoch[p])
  }
  :: d_step {
    HAS_LOG && !ENDS_WITH_OWN_ENTRY(m, p) ->
    printf("%d has lost the log of %d\n", m, p);
    forget(m, p)
  }
  /* The broker accepts the session, and ends the connection of whoever had it. An owner whose
     connection a newer one has ended must not come back. The member may learn of it much later: a
     renewal that it sends in between does not count in Membership, and does here. */
  :: d_step {
    held[HERE] == Connecting ->
    printf("the broker accepts the session of %d for %d\n", m, p);
    MUST(2, !ousted[HERE]);
    IN_ALL(i, MEMBERS, TAKE_SESSION(m, p));
    connection[HERE] = true;
    sessionEpoch[p] = (sessionEpoch[p] < heldEpoch[HERE] -> heldEpoch[HERE] : sessionEpoch[p]);
    wait_for_renewal(m, p, CONNECTED);
    close_gaps(p)
  }
  /* The attempt fails. */
  :: d_step {
    held[HERE] == Connecting && FAULT_IS_POSSIBLE ->
    printf("%d cannot connect for %d\n", m, p);
    FAULT;
    wait_for_renewal(m, p, DISCONNECTED)
  }
  /* The connection ends by itself. */
  :: d_step {
    connection[HERE] && FAULT_IS_POSSIBLE ->
    printf("the connection of %d for %d ends\n", m, p);
    FAULT;
    connection[HERE] = false
  }
  /* The member learns that its connection has ended, by itself or by another member's. */
  :: d_step {
    held[HERE] >= MayDrive && !connection[HERE] ->
    printf("%d learns that its connection for %d has ended\n", m, p);
    wait_for_renewal(m, p, DISCONNECTED)
  }
  /* It notices that it was paused. */
  :: d_step {
    held[HERE] == Driving && FAULT_IS_POSSIBLE ->
    printf("%d notices a pause and asks again for %d\n", m, p);
    FAULT;
    wait_for_renewal(m, p, CONNECTED)
  }
  /* The broker takes a command. No newer owner may have connected before. */
  :: d_step {
    held[HERE] == Driving && connection[HERE] ->
    printf("%d sends a command for %d\n", m, p);
    MUST(1, heldEpoch[HERE] == sessionEpoch[p])
  }
  /* It reads that another member is the owner. */
  :: d_step {
    held[HERE] >= Opening && epoch[p] > heldEpoch[HERE] ->
    printf("%d reads that %d has another owner\n", m, p);
    forget(m, p)
  }
  /* It gives the partition away: it has ended the session, and now that is stored. */
  :: d_step {
    held[HERE] >= MayConnect && owner[p] == m && epoch[p] == heldEpoch[HERE] && FAULT_IS_POSSIBLE ->
    printf("%d gives %d away\n", m, p);
    FAULT;
    owner[p] = NOBODY;
    forget(m, p)
  }
  /* It reads that it is the owner of what it does not have, and gives that away. */
  :: d_step {
    held[HERE] == Free && owner[p] == m ->
    printf("%d gives %d away, which it does not have\n", m, p);
    owner[p] = NOBODY
  }
  od
}

#define IS_WAITING(m, p) (held[AT(m, p)] == MayConnect || held[AT(m, p)] == MayDrive)

/* A member as a whole: its presence. */
proctype Member(byte m) {
  do
  /* It sends a renewal. */
  :: d_step {
    renewal[m] == NoRenewal ->
    printf("%d sends a renewal\n", m);
    renewal[m] = Sent;
    IN_ALL(q, PARTITIONS, asked[AT(m, q)] = IS_WAITING(m, q))
  }
  /* The engine stores it if the presence is still the one that the member has written last. */
  :: d_step {
    renewal[m] == Sent && RENEWAL_IS_STORED(m) ->
    printf("the renewal of %d is stored\n", m);
    renewal[m] = Stored;
    present[m] = true
  }
  /* It is lost, as in an election. */
  :: d_step {
    renewal[m] == Sent && FAULT_IS_POSSIBLE ->
    printf("the renewal of %d is lost\n", m);
    FAULT;
    renewal[m] = NoRenewal;
    IN_ALL(q, PARTITIONS, asked[AT(m, q)] = false)
  }
  /* The member reads that it is stored, and does what waited for that. */
  :: d_step {
    renewal[m] == Stored ->
    printf("%d reads that its renewal is stored\n", m);
    renewal[m] = NoRenewal;
    IN_ALL(q, PARTITIONS,
      if
      :: IS_WAITING(m, q) && IS_ALLOWED(m, q) -> held[AT(m, q)] = held[AT(m, q)] + 1
      :: else
      fi;
      asked[AT(m, q)] = false)
  }
  /* Another member evicts it: it has read its newest presence, and replaces that. It need not have
     been silent. */
  :: d_step {
    present[m] && FAULT_IS_POSSIBLE ->
    printf("%d is evicted\n", m);
    FAULT;
    present[m] = false;
    IN_ALL(q, PARTITIONS, owner[q] = (owner[q] == m -> NOBODY : owner[q]))
  }
  /* It learns that, gives everything up, and joins as another incarnation. A process that was killed
     does nothing before this step either: it is the start of the next one. */
  :: d_step {
    !present[m] ->
    printf("%d joins again\n", m);
    renewal[m] = NoRenewal;
    IN_ALL(q, PARTITIONS, forget(m, q));
    present[m] = true
  }
#ifdef ENGINE_FORGETS
  /* The assumption that the engine breaks when it loses what was not written to a disk: the records
     are again as they were before the eviction. The log keeps the newer owner's claim. */
  :: d_step {
    !present[m] ->
    printf("the engine forgets that %d is evicted\n", m);
    present[m] = true;
    IN_ALL(q, PARTITIONS,
      if
      :: held[AT(m, q)] >= Opening -> owner[q] = m; epoch[q] = heldEpoch[AT(m, q)]
      :: else
      fi)
  }
#endif
  od
}

init {
  atomic {
    IN_ALL(i, MEMBERS, run Member(i); IN_ALL(q, PARTITIONS, run Partition(i, q)))
  }
}
