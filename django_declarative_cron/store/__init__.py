"""The one writer of rows, and the protocol by which several processes share them.

**Who is who.** A process is known by a UUID of its own, never by host or process id. All of
one deployment share the row ``SchedulerState``: leader, term, end of the lease, digest of
the active registration set. Times of leases and heartbeats are the database's; a process
measures its own patience in monotonic seconds.

**Leading.** Every evaluating transaction locks that row first and holds it to the commit
(``guard``). Under the lock it is certain who leads, as taking over needs the same lock:
the lock is what fences, the lease only says from when on the lead may be taken. A leader
whose lease is over and whose name still stands there goes on, and renews it. A term grows
with each change of the leader, and each run carries the term under which it was claimed.

**Renewing.** The heartbeat's thread renews the lease every ``RENEW``, each claim does too
where ``RENEW`` has passed. What a renewal is worth is counted from when it *began*: one that
was under way for 3 of 15 seconds is good for 12 more. While the database does not answer, a
leader believes in its lead for no longer than that (``runtime.trust``), and says so.

**Standing by.** A standby looks twice a second, without a lock, and at the instant at which
it saw the lease end. When the lead is free it takes it under the lock, with a new term. It
starts nothing, records its own runs, and beats.

**Leaving.** A stop gives the lead up at once, then waits for its runs, then writes down that
it has stopped. So another leads within a second, whatever the grace. Who stops does not take
a lead that is free: a claim that waits for the lock asks once more when it has it.

**Living.** A sign of life is a heartbeat in the process's own row, given by its thread or by
its companion (``runtime.companion``), which cannot renew a lease. Who was silent for longer
than ``DEAD_AFTER`` is dead, where the deployment was watched for as long without a gap: an
outage silences everybody and kills nobody. Who gives itself up, or whose companion saw its
end, is dead at once. Runs of the dead become interrupted, and restart once, under the lock;
one whose rows somebody else holds is left for the next pass, and its process with it. A
living process that lost only its lead keeps its runs.

**Watching.** Whoever looks at the deployment again and again knows since when the database
answers him without a gap, by the database's time. A leader writes it into the deployment's
row with each renewal (``vigil``), everybody into his own row with each heartbeat. Who takes
the lead goes on with the watch of those before him as far as theirs reach to his: leaders may
be lost one after the other, and the dead are found as soon as ever. A gap longer than a
``RENEW`` begins the watch anew. After an outage, a sleep of the machines or a leap of the
database's clock there is such a gap in everybody's watch, and the living have the whole of
``DEAD_AFTER`` to be heard of again. It costs no statement but one when the lead is taken.

**Claiming ahead.** What is due at an instant is decided and written up to 25 ms before it, as
of that instant, under the lock and in a transaction that stays open until the clock shows it
(``runtime.ahead``). So nobody sees a start before its time, and a person's act comes before it
or waits for it. A task that is running is left for the instant itself, as its run may end in
between; a clock that is set back, or a stop, takes back the whole of it.

**Waking up.** A leader that was stopped or suspended looks before it does anything: its next
claim finds another name under the lock, and it stands by. A run that it had committed and
not yet called is called only where its last sign of life is younger than ``DEAD_AFTER``, or
the database says that the run is still its own. The results of runs that were taken from it
change nothing.

**What fences what**::

    a claim            the locked row: my name, my set; one running row per task (constraint)
    calling a run      its claim is committed, and I live by my own trust or by its row
    a result           its row: still running, still mine; else it is late, and only told
    a task's state     its epoch: an override or removal since then keeps the result out
    a registration     the locked row: release, or nobody left who holds the active set
    a burial           the locked row, my lead, the watch without a gap, the silence

Nothing else is kept between transactions: no session, no advisory lock, no open
transaction while a callback runs.
"""
