"""The only writer of rows, and the protocol by which several processes share them.

**Identity.** A process is known by a UUID of its own, never by host or process id. All processes
of one deployment share the row ``SchedulerState``: leader, term, end of the lease, digest of the
active registration set. Times of leases and heartbeats are the database's; a process measures its
own waits in monotonic seconds.

**Leading.** Every evaluating transaction locks that row first and holds the lock to the commit
(``guard``). A takeover needs the same lock, so the leader cannot change under it: the lock fences,
and the lease only limits when another process may take over. If its lease has expired but its name
is still in the row, the leader continues and renews the lease. The term grows with each change of
the leader, and each run carries the term under which it was claimed.

**Renewing.** The heartbeat's thread renews the lease every ``RENEW``; each claim does too where
``RENEW`` has passed. A renewal counts from when it *began*: one that was under way for 3 of 15
seconds is good for 12 more. While the database does not answer, a leader counts as leader for no
longer than that (``runtime.fencing``), and logs it.

**Standing by.** A standby polls twice a second, without a lock, and at the instant at which it
saw the lease end. If the lease has expired, it takes the lead under the lock, with a new term. It
starts nothing, records its own runs, and sends heartbeats.

**Stopping.** A stop gives the lead up immediately, then waits for its runs, then records that the
process has stopped. So another process leads within a second, even during a long grace period. A
process that is asked to stop does not take a free lead: a claim that waits for the lock checks
again when it has it.

**Liveness.** A sign of life is a heartbeat in the process's own row, sent by its thread or by its
watchdog process (``runtime.watchdog``), which cannot renew a lease. A process that was silent
for longer than ``DEAD_AFTER`` is dead, if the deployment was observed for as long without a
gap: an outage silences every process and kills none. A process that gives itself up is dead
immediately, and so is one after its watchdog saw its end. Runs of dead processes become
interrupted, and restart once, under the lock; a run with rows locked by another transaction is
left for the next tick, and its process with it. A living process that lost only its lead keeps
its runs.

**Observation.** A process that polls the deployment knows since when the database answers it
without a gap, by the database's time. A leader writes that into the deployment's row with each
renewal, every process into its own row with each heartbeat. A new leader continues the
observation of earlier leaders if theirs overlaps with its own, so dead processes are found as
soon even if several leaders are lost in succession. A gap longer than ``RENEW`` restarts the
observation. After an outage, a suspended machine or a step of the
database's clock every process has such a gap, and the living have the whole of ``DEAD_AFTER`` to
send a heartbeat.

**Resuming.** A leader that was stopped or suspended polls before it does anything: its next claim
finds another name under the lock, and it stands by. A run that it had committed and not yet
called is called only if its last sign of life is younger than ``DEAD_AFTER``, or the database
says that the run is still its own. Results of runs that were taken from it change nothing.

**Fencing**::

    a claim            the locked row: my name, my set; one running row per task (constraint)
    calling a run      its claim is committed, and I live by my own trust or by its row
    a result           its row: still running, still mine; otherwise it is discarded and logged
    a task's state     its epoch: an override or removal since then keeps the result out
    a registration     the locked row: release, or no living holder of the active set
    declaring dead     the locked row, my lead, the observation without a gap, the silence

Nothing else is kept between transactions: no session, no advisory lock, no open transaction while
a callback runs.
"""
