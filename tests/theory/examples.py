"""The thirty traces of the design, with the verdict of each reading."""

from __future__ import annotations

from .notation import cases

EXAMPLES = cases("""
1
  ran · 120 Due a · 121 RS a · 122 REf a · 422 RetryDue a · 423 RS a · 424 REs a → ok
2
  init 10 [a] · 20 RS a · 21 REs a → S1 2
3
  ran · 63 RS a · 64 REs a → S1 5, S2 5
4
  began · 120 Due a · 121 RS a → S1 5
5
  crashed · 82 RS a · 83 REs a → ok
6
  crashed · 300 Tick → open a | L1 6, open a
7
  crashed · 82 REs a → S4 7 recorder, EA6 7 recorder, open a
8
  began · stop 65 · 90 REs a → S3 5
9
  owed · 61 SS · 61 RS a · 62 REs a · 63 SE → S1 4
10
  60 Due a · init 70 [a] · 72 RS a · 73 REs a → ok
11
  60 Due a + Due b · init 70 [a,b] · 72 RS a · 73 RS b · 74 REs a · 75 REs b → S1 4 | ok
12
  60 Due a · 120 Tick · init 125 [a] · 127 RS a · 128 REs a → S1 4
13
  ran · stop 65 · 120 Due a · 180 Due a · init 200 [a] · 202 RS a · 203 REs a → ok
14
  ran · stop 65 · 120 Due a · 180 Due a · init 200 [a] · 202 RS a · 203 REs a · 204 RS a
  · 205 REs a → S1 13, S2 13
15
  began · 120 Due a · 130 REs a · 131 RS a · 132 REs a → ok
16
  failed · 100 RS a · 101 REs a → S1 5
17
  failed · 120 Due a · 121 RS a · 122 REs a · 362 RetryDue a · 363 RS a · 364 REs a
  → S2 9 | S1 9, S2 9
18
  failed · 120 Due a · 121 RS a · 122 REs a · 362 RetryDue a · 900 Tick → open a | ok
19
  10 IS[a] · 11 SS · 12 IEs[a] · 13 SE · 60 Due a · 900 Tick → open a | ok
20
  init 10 [a] · 60 Due a + RS a · 61 REs a → S1 2, open a | S1 2
21
  init 10 [a] · 60 Due a · 60 RS a · 61 REs a → ok
22
  init 10 [z] · 60 Due z · 61 RS z · 62 REf z · 63 RS z · 64 REs z → ok
23
  failed · 362 Tick · 362 RS a · 363 REf a · 364 RS a · 365 REs a → ok | S1 8
24
  failed · stop 63 · init 65 [b] · stop 67 · 362 RetryDue a · init 370 [a] · 372 RS a → S1 14
25
  began · 62 Crash · init 70 [b] · 80 Crash · 120 Tick · init 130 [a] · 132 Crash · init 140 [a]
  · 142 RS a · 143 REs a → ok | S1 14
26
  ran · stop 63 · init 65 [b] · stop 67 · init 69 [a] · 71 RS a · 72 REs a → S2 13
27
  {a 2, a' 1} init 10 [a] · 60 Due a' · 120 Due a · 121 RS a · 122 REs a · stop 130
  · init 140 [a'] · 142 RS a · 143 REs a → ok | S1 10, S2 10
28
  owed · 61 REs a → S4 3 recorder, open a
29
  init 10 [a] · 60 Due a + Due b · 61 RS b → S1 3, open a
30
  ran · 65 Crash · init 70 [a] · 75 RS a · 76 REs a → S1 8, S2 8
""")
