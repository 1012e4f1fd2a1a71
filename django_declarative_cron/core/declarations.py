"""The declarations of one registration set, each put together when somebody asks for it.

A process that starts holds thousands of them, and soon asks for those few that are due. So a set
keeps three columns: the name of each task, the text of its expression, and what it has in common
with others. An expression is read when it is asked for; before the set is relied on, somebody says
that all of them are sound, or has every one of them read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from ..cron import parse
from ..exceptions import InvalidCronExpressionError
from .declaration import Declaration, Terms
from .terms import digest_of


@dataclass(slots=True, eq=False)
class Common:
    """What tasks have in common that differ in their names and their expressions only.

    Args:
        first: one of them.
        terms: by the text of the expression, those that were asked for.
        said: changes whenever anything of it does.
    """

    first: Declaration
    terms: dict[str, Terms] = field(init=False)
    said: str = field(init=False)

    def __post_init__(self) -> None:
        terms = self.first.terms
        self.terms, self.said = {terms.cron: terms}, terms.digest_beside()

    def at(self, cron: str) -> Terms:
        """Give the terms of a task with an expression; those of one text are one object.

        Args:
            cron: text of the expression.

        Raises:
            InvalidCronExpressionError: it cannot be read.
        """
        found = self.terms.get(cron)
        if found is None:
            expression = parse(cron, self.first.dialect)
            found = self.terms.setdefault(cron, self.first.terms.at(expression))
        return found


class Declarations(Sequence[Declaration]):
    """The declarations of one set, in their order.

    Args:
        names: of the tasks, each once and each acceptable.
        crons: texts of their expressions.
        common: what each of them has in common with others.
        in_full: reads the whole set, and raises what is wrong in it first; ``None`` where every
            expression was read.
    """

    def __init__(
        self,
        names: Sequence[str],
        crons: Sequence[str],
        common: Sequence[Common],
        in_full: Callable[[], object] | None = None,
    ) -> None:
        self.places = dict(zip(names, range(len(names)), strict=True))
        self._names, self._crons, self._common = names, crons, common
        self._in_full = in_full
        self._made: Sequence[Declaration] | None = None

    @classmethod
    def of(cls, declarations: Iterable[Declaration]) -> Declarations:
        """Give declarations as a set, unless they are one.

        Args:
            declarations: understood, each name once.
        """
        if isinstance(declarations, Declarations):
            return declarations
        made = tuple(declarations)
        known: dict[tuple[int, int], Common] = {}
        common = []
        for each in made:
            terms = each.terms
            # A spread gives each task rules of its own.
            key = id(terms.manner), id(terms.rules)
            if key not in known:
                known[key] = Common(each)
            known[key].terms.setdefault(terms.cron, terms)
            common.append(known[key])
        found = cls([each.name for each in made], [each.cron for each in made], common)
        found._made = made
        return found

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, place: int) -> Declaration: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Declaration]: ...

    def __getitem__(self, place: int | slice) -> Declaration | Sequence[Declaration]:
        if self._made is not None or isinstance(place, slice):
            return self._all()[place]
        return Declaration(self._names[place], self._common[place].at(self._crons[place]))

    def __iter__(self) -> Iterator[Declaration]:
        return iter(self._all())

    def _all(self) -> Sequence[Declaration]:
        """Give all of them, which stay: who asks once for each does so again."""
        if self._made is None:
            terms = map(Common.at, self._common, self._crons)
            self._made = list(map(Declaration, self._names, terms))
        return self._made

    def digest(self) -> str:
        """Give a short text that changes whenever the set does; the order says nothing.

        Of a set that was not understood too: no name, and no text that is taken in columns, has
        one of the two characters that stand between them.
        """
        said = [each.said for each in self._common]
        lines = map("\0".join, zip(self._names, said, self._crons, strict=True))
        return digest_of("\n".join(sorted(lines)))

    def one_of_each_kind(self) -> list[Declaration]:
        """Give one of those that differ in their names and their expressions only."""
        return [each.first for each in dict.fromkeys(self._common)]

    def trust(self) -> None:
        """Take it that every expression is sound: the same ones were read before."""
        self._in_full = None

    def understand(self) -> None:
        """Read every expression, unless that was done.

        Raises:
            DeclarativeCronError: what is wrong in the set first, in the order of its reading.
        """
        if self._in_full is None:
            return
        dialects = [each.first.dialect for each in self._common]
        try:
            for cron, dialect in set(zip(self._crons, dialects, strict=True)):
                parse(cron, dialect)
        except InvalidCronExpressionError:
            # A full reading says where it stands, and how to mend it.
            self._in_full()
            raise
        self._in_full = None


class ByName(Mapping[str, Declaration]):
    """The declarations of one set by the names of their tasks.

    Args:
        in_order: the set.
    """

    def __init__(self, in_order: Iterable[Declaration] = ()) -> None:
        self.in_order = Declarations.of(in_order)

    def __getitem__(self, name: str) -> Declaration:
        return self.in_order[self.in_order.places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.in_order.places)

    def __len__(self) -> int:
        return len(self.in_order)


def digest_of_set(declarations: Iterable[Declaration]) -> str:
    """Give a short text that changes whenever a registration set does.

    Args:
        declarations: the whole set; their order says nothing.
    """
    return Declarations.of(declarations).digest()


def trust(declarations: Iterable[Declaration]) -> None:
    """Take it that every expression of a set is sound: it is relied on already.

    Args:
        declarations: the set.
    """
    if isinstance(declarations, Declarations):
        declarations.trust()


def understand(declarations: Iterable[Declaration]) -> None:
    """Read every expression of a set, unless that was done.

    Args:
        declarations: the set.

    Raises:
        DeclarativeCronError: what is wrong in the set first.
    """
    if isinstance(declarations, Declarations):
        declarations.understand()
