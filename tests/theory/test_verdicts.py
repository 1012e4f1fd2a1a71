"""Traces and their verdicts: the thirty of the design, what is easily wrong, and R1 to R10."""

from __future__ import annotations

import pytest

from django_declarative_cron.theory import check

from .examples import EXAMPLES
from .notation import Case, Mode, Record, both_modes, cases, crons_of, said, trace


def each_of(table: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", table, ids=lambda case: case.name)


@pytest.mark.requirement("004 EA1", "004 S1")
@each_of(EXAMPLES)
def test_an_example_gets_its_verdict(case: Case) -> None:
    case.check()


def test_all_examples_are_there() -> None:
    assert [case.name for case in EXAMPLES] == [str(number) for number in range(1, 31)]


STATING = [
    case
    for case in EXAMPLES
    if any(record["event"] == "Due" for record in trace(case.text)) and not crons_of(case.text)
]


@both_modes
@pytest.mark.parametrize("cron", ["* * * * *", "59 23 31 12 *"])
@each_of(STATING)
def test_stated_dues_hold_whatever_the_cron_expression_says(
    case: Case, cron: str, mode: Mode
) -> None:
    records = trace(case.text, dict.fromkeys("abz", cron))
    for record in records:
        record.pop("cron", None)
    assert said(check(records, mode)) == case.expected(mode)


# Made, a due comes before what happens at its instant: example 20 has them in one position.
MADE = [case for case in EXAMPLES if case.name != "20"]


@both_modes
@each_of(MADE)
def test_made_pulses_say_what_stated_ones_say(case: Case, mode: Mode) -> None:
    expected = check(trace(case.text), mode)
    found = check(without_pulses(case.text), mode)
    assert {(v.axiom, v.at, v.owner) for v in found} == {(v.axiom, v.at, v.owner) for v in expected}


def without_pulses(text: str) -> list[Record]:
    """Leave dues and retries to the judge; cron expressions name the minutes of the dues."""
    stated, named = trace(text), {cron: name for name, cron in crons_of(text).items()}
    minutes: dict[str, set[int]] = {}
    for record in stated:
        if record["event"] == "Due":
            written = named.get(record.get("cron", ""), record["task"])
            minutes.setdefault(written, set()).add(record["at"].minute)
    crons = {
        task: f"{','.join(map(str, sorted(known)))} * * * *" for task, known in minutes.items()
    }
    records = trace(text, dict.fromkeys(["a", "a'", "b", "z"], "59 * * * *") | crons)
    kept = [each for each in records[:-1] if each["event"] not in ("Due", "Tick", "RetryDue")]
    end = {"at": records[-1]["at"], "event": "Tick"}
    return [*kept, *(records[-1:] if records[-1]["event"] not in ("Due", "RetryDue") else []), end]


EASILY_WRONG = cases("""
2 nothing starts after a stop started
  owed · 61 SS · 61 RS a → S1 4, open L3
3 a run that ends where it starts goes on
  owed · 61 RS a + REs a · 62 Tick · 63 REs a
  → EA3 3 recorder, S4 3 recorder | EA3 3 recorder, S4 3 recorder, S4 5 conditional
5 a due survives a run that began earlier
  began · 120 Due a · 130 REs a → open a
6 what was due is owed after a crash
  owed · 65 Crash · init 200 [a] · 202 RS a · 203 REs a → ok
6 what was due is owed after a stop
  owed · stop 65 · init 200 [a] · 202 RS a · 203 REs a → ok
6 what falls due while nothing is active is owed
  ran · 65 Crash · 120 Due a · init 200 [a] · 202 RS a · 203 REs a → ok
7 an override is no first coming
  {a 1, a' 2} owed · init 70 [a'] · 80 RS a → S1 5
7 a repeated list is no first coming
  owed · init 100 [a] · 102 RS a → ok
8 a list that is asked for is not registered yet
  owed · 70 IS[b] · 80 RS a → open L2
  init 10 [a] · 60 Due b · 70 IS[b] · 80 RS b → S1 4, open L2
8 a list that is refused is not registered
  owed · 69 IS[b] · 70 IEf[b] · 80 RS a → S5 4
  init 10 [a] · 60 Due b · 69 IS[b] · 70 IEf[b] · 80 RS b → S5 4, S1 5
9 a minute ends where nothing is told
  60 Due a · init 125 [a] · 127 RS a → S1 3
12 a list that is refused leaves the old one active
  init 10 [a] · 20 IS[b] · 21 IEf[b] storage · 60 Due a · 61 RS a · 62 REs a
  → S5 3 environment | ok
14 old retry pulses count by the letter only
  failed · 120 Due a · 121 RS a · 122 REs a · 363 RS a · 364 REs a → S2 9 | S1 9, S2 9
16 an end after the stop is not forgiven
  began · 65 SS · 66 SE · 66 REs a → S3 5
17 a crash that is not written down keeps the task running
  began · init 80 [a] · 82 RS a → S1 6
""")


@pytest.mark.requirement(
    "004 S1", "004 S2", "004 S3", "004 Safety Axioms/2", "004 Liveness Axioms/1"
)
@each_of(EASILY_WRONG)
def test_a_trace_that_is_easily_misjudged(case: Case) -> None:
    case.check()


REPAIRED = cases("""
R1 boot obligations are met one after another
  60 Due a + Due b · init 70 [a,b] · 72 RS a · 140 RS b → | ok
R1 a boot obligation is owed until it is met
  60 Due a · init 70 [a] · 170 Tick → | L1 2, open a
R1 nothing is owed at boot by what still runs
  began · init 65 [b] · init 70 [a] · 80 REs a · 300 Tick → | ok
  began · init 65 [b] · init 70 [a] · 80 REs a · 90 RS a → | S1 9
R2 the newest failure counts
  failed · 120 Due a · 121 RS a · 122 REf a · 400 RS a → | S1 9
  failed · 120 Due a · 121 RS a · 122 REf a · 422 RS a → | ok
R2 a retry is pending from its very instant
  failed · 362 RS a → ok
  failed · 361.999999 RS a → S1 5
R2 a failure may say when its retry is due
  owed · 61 RS a · 62 REf a retry 100 · 100 RS a → ok
  owed · 61 RS a · 62 REf a retry never · 100 RS a → S1 5
R3 an interrupted run restarts once
  began · 62 Crash · init 70 [a] · 72 RS a · 73 REs a · 74 Crash · init 80 [a] · 82 RS a
  → S1 12
R4 an initialisation during a stop does not activate
  10 SS · 11 IS[a] · 12 IEs[a] · 13 SE · 60 Due a · 61 RS a → | S1 5
R4 a crash ends a stop
  10 SS · 11 Crash · init 20 [a] · 60 Due a · 61 RS a → ok
R6 an override owes nothing for the past
  {a 2, a' 1} owed · init 121 [a'] · 900 Tick → | ok
R6 an override cancels the retry
  {a 2, a' 40} failed · init 65 [a'] · 900 Tick → | ok
R6 an override boots in a minute that matches
  {a 2, a' 1} init 10 [a] · init 90 [a'] · 92 RS a → | ok
  {a 2, a' 1} init 10 [a] · init 90 [a'] · 150 RS a → | ok
  {a 30, a' 1} init 10 [a] · init 125 [a'] · 127 RS a → | S1 4
R6 an override waits for the run in flight
  {a 1, a' 2} init 10 [a] · 61 RS a · init 70 [a'] · 125 Tick · 130 REs a · 131 RS a → | ok
  {a 1, a' 2} init 10 [a] · 61 RS a · init 70 [a'] · 125 RS a · 130 REs a · 131 RS a
  → | S1 7, S1 9
R6 what a run does after its task changed is of no consequence
  {a 1, a' 50} init 10 [a] · 61 RS a · init 70 [a'] · 80 REf a · 900 Tick → | ok
  {a 1, a' 50} init 10 [a] · 61 RS a · init 70 [a'] · 80 Crash · init 81 [a'] · 900 Tick → | ok
  {a 1, a' 50} init 10 [a] · 61 RS a · init 70 [a'] · 80 REs a · 900 Tick → | ok
R6 nor what it does after its task came back
  {a 1, b 50} init 10 [a] · 61 RS a · init 70 [b] · init 72 [a] · 80 REf a · 900 Tick → | ok
  {a 1, b 50} init 10 [a] · 61 RS a · init 70 [b] · init 72 [a] · 80 Crash · init 81 [a]
  · 900 Tick → | ok
  {a 1, b 50} init 10 [a] · 61 RS a · init 70 [b] · init 72 [a] · 80 REs a · 900 Tick → | ok
R8 a first coming wins over a pulse at its position
  failed · init 65 [b] · 362 RetryDue a + IEs[a] · 400 Tick → open a | ok
R10 a stop does not wait for what a worker calls
  owed · 61 RS a handed · 65 SS · 66 SE · 90 REs a handed → | ok
  began · 65 SS · 66 SE · 90 REs a → | S3 5
R10 nor for what the theory does not govern
  init 10 [a:allow] · 61 RS a handed · 65 SS · 66 SE · 90 REs a handed → | ok
  init 10 [a:allow] · 61 RS a · 65 SS · 66 SE · 90 REs a → | S3 4
R10 it waits for its own beside it
  init 10 [a,b] · 60 Due a + Due b · 61 RS a handed · 62 RS b · 65 SS · 66 SE · 90 REs a handed
  → | S3 6
R10 nor is it excused by it
  owed · 61 RS a handed · 65 SS · 600 Tick → | L3 4, open L3
  began · 65 SS · 600 Tick → | ok
R10 a crash leaves it alone
  owed · 61 RS a handed · 65 Crash · 70 REs a handed · init 80 [a] · 600 Tick → | ok
  began · 65 Crash · 70 REs a · init 80 [a] · 600 Tick
  → | S4 5 recorder, EA6 5 recorder, L1 7 conditional, open a
R10 it is one at a time all the same
  owed · 61 RS a handed · 65 Crash · init 70 [a] · 72 RS a handed · 80 REs a handed → | S1 7, S2 7
  began · 65 Crash · init 70 [a] · 72 RS a · 80 REs a → | ok
R10 its success counts for its occurrence
  owed · 61 RS a handed · 65 Crash · 70 REs a handed · init 80 [a] · 82 RS a handed
  · 83 REs a handed → | S1 8, S2 8
R10 what follows it is the scheduler's own again
  owed · 61 RS a handed · 62 REs a handed · 120 Due a · 121 RS a · 125 Crash · init 130 [a]
  · 131 RS a · 132 REs a → | ok
a stated retry counts only where no delay is known
  failed · 100 RetryDue a · 101 RS a → S1 6
a task back in the minute of its success need not start
  ran · init 65 [b] · init 70 [a] · 900 Tick → | ok
  ran · init 65 [b] · init 70 [a] · 72 RS a · 73 REs a → | S2 9
a task back in the minute of its failure is owed
  failed · init 65 [b] · init 70 [a] · 900 Tick → | L1 8, open a
  failed · init 65 [b] · init 70 [a] · 72 RS a · 73 REs a → | ok
a task back in a later minute is owed again
  ran · init 65 [b] · 120 Due a · init 130 [a] · 900 Tick → | L1 9, open a
  ran · init 65 [b] · 120 Due a · init 130 [a] · 132 RS a · 133 REs a → | ok
a due later in the excused minute counts
  ran · init 65 [b] · init 70 [a] · 120 Due a · 211 Tick → | L1 9, open a
an override in the minute of a success does not start
  {a 1, a' 1,50} init 10 [a] · 61 RS a · 62 REs a · init 65 [a'] · 900 Tick → | ok
  {a 1, a' 1,50} init 10 [a] · 61 RS a · 62 REs a · init 65 [a'] · 72 RS a · 73 REs a
  → | S1 7, S2 7
an override after a success may boot in a later minute
  {a 1, a' 2} init 10 [a] · 61 RS a · 62 REs a · init 130 [a'] · 132 RS a · 133 REs a → | ok
the order within a position says nothing
  init 10 [a] · 60 RS a + Due a · 61 REs a → | S1 2
a task taken off the list is owed nothing any more
  init 10 [a,b] · 60 Due a + Due b · 61 RS b · init 70 [b] · 300 Tick → | ok
  init 10 [a,b] · 60 Due a + Due b · 61 RS b · init 70 [a,b] · 300 Tick → | L1 2, open a
a policy may change with everything else preserved
  {a 1} init 10 [a:skip] · init 20 [a:skip] · 30 RS a → | ok
  {a 1} init 10 [a:skip] · 20 IS[a:skip] · 21 IEs[a] · 30 RS a → | S1 4
a stop waits for runs that are not governed
  {a 1} init 10 [a:allow] · 20 RS a · 21 RS a · 30 SS · 31 REs a · 32 REs a · 33 SE → | ok
  {a 1} init 10 [a:allow] · 20 RS a · 21 RS a · 30 SS · 31 REs a · 33 SE → | S3 6
  {a 1} init 10 [a:allow] · 20 RS a · 21 RS a · 30 SS · 31 REs a · 900 Tick → | ok
  {a 1} init 10 [a:allow] · 20 RS a · 21 RS a · 30 SS · 31 REs a · 32 REs a · 900 Tick
  → | L3 6, open L3
  {a 1} init 10 [a:allow] · 20 RS a · 21 RS a · 29 Crash · 30 SS · 31 SE → | ok
""")


@pytest.mark.requirement("004 Stateful/1")
@each_of(REPAIRED)
def test_the_repaired_reading(case: Case) -> None:
    case.check()


LIVENESS = cases("""
L1 the bound itself is in time
  owed · 150.006 RS a → | ok
  owed · 150.006001 RS a → | L1 2
L1 the bound grows with the list
  init 10 [a,b] · 60 Due a · 150.012 RS a → | ok
  init 10 [a,b] · 60 Due a · 150.012001 RS a → | L1 2
L1 a made due has its own instant
  {a 4,5} init 10 [a] · 340 RS a · 341 REs a → ok | L1 2
L1 overlapping freezes count once
  owed · 60 Freeze to 100 · 70 Freeze to 120 · 80 Freeze to 90 · 130 Freeze to 140 · 220.006 RS a
  → | ok
  owed · 60 Freeze to 100 · 70 Freeze to 120 · 80 Freeze to 90 · 130 Freeze to 140 · 220.007 RS a
  → | L1 2
L1 a stop discharges
  owed · stop 100 · 900 Tick → | ok
  owed · stop 200 · 900 Tick → | L1 2
L1 the same list again does not discharge
  owed · init 100 [a] · 160 RS a → | L1 2
L2 an initialisation is awaited
  10 IS[a] · 101 Tick → | L2 0, open L2
  10 IS[a] · 11 IEs[b] · 101 Tick → | L2 0, open L2
  10 IS[a] · 11 Crash · 101 Tick → | ok
L3 a stop knows what is registered after a crash
  init 10 [a] · 20 Crash · 30 SS · 900 Tick → open L3 | L3 3, open L3
L3 and R5: a stop is awaited once nothing runs
  began · 65 SS · 70 REs a · 160.006 Tick → | open L3
  began · 65 SS · 70 REs a · 161 Tick → | L3 5, open L3
  10 SS · 101 Tick → | L3 0, open L3
  10 SS · 11 SE · 101 Tick → | ok
  10 SS · 11 Crash · 101 Tick → | ok
""")


@pytest.mark.requirement("004 L1", "004 L2", "004 L3")
@pytest.mark.requirement("004 Liveness Axioms/1", "001 Real-time bounds/2")
@each_of(LIVENESS)
def test_responses_have_a_bound(case: Case) -> None:
    case.check()


ENVIRONMENT = cases("""
EA1 a crash is alone
  owed · 61 Crash + RS a → EA1 3 recorder
  owed · 61 Crash + REs a → EA1 3 recorder, EA6 3 recorder, S4 3 recorder
  owed · 61 Crash + IS[a] → EA1 3 recorder
  owed · 61 Crash + SS → EA1 3 recorder
EA1 a pulse may meet a crash
  init 10 [a] · 60 Crash + Due a → ok
EA2 a freeze covers its start and not its end
  owed · 60 Freeze to 70 · 60 RS a → EA2 4 recorder
  owed · 60 Freeze to 70 · 70 RS a → ok
EA2 what came before the freeze is outside
  began · 61 Freeze to 70 · 70 REs a → ok
EA2 an action shows that the freeze was none
  owed · 60 Freeze to 9000 · 100 SS · 101 SE · 102 IS[a] · 103 IEs[a] · 104 RS a
  → EA2 4 recorder
EA2 makes the liveness conditional
  owed · 60 Freeze to 70 · 65 SS · 66 SE · init 67 [a] · 500 RS a
  → | EA2 4 recorder, L1 7 conditional
EA3 two starts in one record
  init 10 [a,b] · 60 Due a + Due b · 61 RS a + RS b → EA3 3 recorder
EA4 no finite trace breaks it
  ran → ok
  ran · 62 Freeze to 9000 → ok
  ran · 70 Freeze to 71 · 99999 Tick → ok
S4 a second end of a claimed run is the scheduler's
  ran · 63 REs a → S4 5
S4 an end after a crash without a start since is the recorder's
  ran · 70 Crash · init 75 [a] · 80 REf a → | S4 8 recorder, EA6 8 recorder
S5 a valid list refused
  10 IS[a] · 11 IEf[a] → S5 1
S5 and R9: an initialisation may fail with the storage
  10 IS[a] · 11 IEf[a] storage → S5 1 environment | ok
S5 and R9: a freeze counts as a storage that is away
  10 IS[a] · 11 Freeze to 60 · 20 IEf[a] → EA2 2 recorder, S5 2 environment | ok
  10 IS[a] · 11 Freeze to 60 · 60 IEf[a] → | S5 2
S5 a record may say that the list was not valid
  10 IS[a] · 11 IEf[a] invalid → ok
  10 IS[a] · 11 IEs[a] invalid → S5 1
S5 refuses a name that comes twice
  init 10 [a,a] → S5 1
  10 IS[a,a] · 11 IEf[a,a] → ok
no fault makes a later violation conditional
  init 10 [a,b] · 50 Tick · 100 RS a → S1 3
EA3 makes it conditional
  init 10 [a,b] · 50 SS + IS[a] · 100 RS a
  → | EA3 2 recorder, S1 3 conditional, open L2, open L3
EA1 makes it conditional
  init 10 [a,b] · 50 Crash + SS · 100 RS a → | EA1 2 recorder, S1 3 conditional
S4 makes it conditional for the task itself and no other
  init 10 [a,b] · 50 REs a · 100 RS a → S4 2 recorder, S1 3 conditional
  init 10 [a,b] · 50 REs b · 100 RS a → S4 2 recorder, S1 3
EA2 says nothing about safety
  init 10 [a,b] · 50 Freeze to 70 · 60 RS b · 100 RS a → EA2 3 recorder, S1 3, S1 4
a fault says nothing about what came before
  init 10 [a] · 20 RS a · 21 Crash + SS → S1 2, EA1 3 recorder
""")


@pytest.mark.requirement("004 EA1", "004 EA2", "004 EA3", "004 EA4", "004 EA6")
@pytest.mark.requirement("004 S4", "004 S5", "004 Safety Axioms/3", "004 Domains & Data Types/2")
@each_of(ENVIRONMENT)
def test_a_fault_has_its_owner(case: Case) -> None:
    case.check()
