"""What a merge of a schedule table would do, and which groups cannot be merged; nothing is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from onebeat.db.catalog import Reference, UniqueKey
from onebeat.takeover.arrive.merge import MergeReport
from onebeat.takeover.arrive.obstacles import Collision, MoreCollisions
from onebeat.takeover.arrive.tables import TASKS, ScheduleTable, listed

#: How many rows are named in a report; the rest is counted.
NAMED = 200


def collisions(table: ScheduleTable) -> Iterator[Collision | MoreCollisions]:
    """Groups that cannot be merged, those of each referring column in the order of their oldest row."""
    for reference in table.references:
        found: dict[int, bool] = {}  # the oldest row of each group, and whether the rows that refer to it are parts
        if reference.identity:
            found |= dict.fromkeys(_children(table, reference), True)
        for key in reference.keys:
            found |= dict.fromkeys(_broken(table, reference, key) - found.keys(), False)
        for oldest, parts in sorted(found.items())[:NAMED]:
            members = table.rows(f"SELECT id FROM ({table.grouped()}) x WHERE oldest = {oldest} ORDER BY id LIMIT 20")
            keys = [int(key) for (key,) in members]
            yield Collision(table.name, table.kind, keys, table.texts([oldest])[oldest], reference.name, parts)
        if len(found) > NAMED:
            yield MoreCollisions(table.name, len(found) - NAMED)


def _joined(table: ScheduleTable, reference: Reference) -> str:
    """SQL for the rows `r` of a referring table, each with the schedule row `m` that it refers to."""
    same = reference.condition(table.using, "r", reference.key_sql(table.using, "m.id"))
    return f"{reference.table} r JOIN ({table.grouped()}) m ON {same}"


def _children(table: ScheduleTable, reference: Reference) -> set[int]:
    sql = f"SELECT DISTINCT m.oldest FROM {_joined(table, reference)} WHERE m.id <> m.oldest"
    return {int(oldest) for (oldest,) in table.rows(sql)}


def _broken(table: ScheduleTable, reference: Reference, key: UniqueKey) -> set[int]:
    """The oldest rows of the groups whose merge would break this unique key."""
    column = table.quoted(reference.column)
    parts = ["onebeat_oldest" if part == column else part for part in key.parts]
    condition = " AND ".join([f"({key.condition})"] * bool(key.condition) + [f"{part} IS NOT NULL" for part in parts])
    sql = (
        f"SELECT DISTINCT onebeat_oldest FROM (SELECT MIN(onebeat_oldest) AS onebeat_oldest FROM ("
        f"SELECT r.*, m.oldest AS onebeat_oldest FROM {_joined(table, reference)}) x "
        f"WHERE {condition} GROUP BY {', '.join(parts)} HAVING COUNT(*) > 1) y"
    )
    return {int(oldest) for (oldest,) in table.rows(sql)}


def foreseen(table: ScheduleTable) -> MergeReport:
    """What a merge of the table as it stands would do."""
    report = MergeReport()
    grouped = f"SELECT oldest, COUNT(*) FROM ({table.grouped()}) x GROUP BY oldest HAVING COUNT(*) > 1"
    for oldest, size in table.rows(grouped):
        report.kept[int(oldest)] = int(size) - 1
        report.merged += int(size) - 1
    for reference in table.references:
        ((count,),) = table.rows(f"SELECT COUNT(*) FROM {_joined(table, reference)} WHERE m.id <> m.oldest")
        report.repointed[reference.name] += count
    return report


def as_json(table: ScheduleTable, report: MergeReport) -> dict[str, object]:
    """A report as it is kept and printed: with the rows that stand for others, those with the most first, and how many
    tasks share each.
    """
    keys = [key for key, _ in report.kept.most_common(NAMED)]
    texts, tasks = table.texts(keys), _sharing(table, keys)
    return {
        "respelled": report.respelled,
        "merged": report.merged,
        "groups": len(report.kept),
        "kept": [
            {"id": key, "value": texts[key], "merged": report.kept[key], "tasks": tasks[key]}
            for key in keys if key in texts
        ],
        "repointed": dict(report.repointed),
    }  # fmt: skip


def _sharing(table: ScheduleTable, keys: Sequence[int]) -> Counter[int]:
    """How many tasks there are to each of these rows and its duplicates."""
    if not keys:
        return Counter()
    rows = table.rows(
        f"SELECT m.oldest, COUNT(*) FROM {table.quoted(TASKS)} r JOIN ({table.grouped()}) m "
        f"ON m.id = r.{table.quoted(f'{table.kind}_id')} WHERE m.oldest IN ({listed(keys)}) GROUP BY m.oldest"
    )
    return Counter({int(key): int(count) for key, count in rows})
