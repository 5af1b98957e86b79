"""The tables that only the engine writes: what is due, what became of each nominal time, what changed, who is at work.

Their keys towards tasks have no constraint in the database: with one, any person's lock on a task would stop the claim.
Rows of deleted tasks are swept.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _

from onebeat.core.identity import new_task_uid
from onebeat.models import fields
from onebeat.models.indexes import Partial
from onebeat.models.instants import UTCDateTimeField


class TaskState(models.Model):
    """When a task is due next, and the definition that this was planned from."""

    task = models.OneToOneField(
        "django_celery_beat.PeriodicTask",
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="onebeat_state",
    )
    #: The task's identity: ids of messages, their headers and the ledger go by it. A random number, never used again.
    uid = models.BigIntegerField(default=new_task_uid)
    #: The name of the task that the uid was made for. With another name and another definition it is another task.
    task_name = models.CharField(max_length=200, default="")
    #: The next nominal time; None when nothing follows (disabled, finished, quarantined, past its end).
    due_at = UTCDateTimeField(null=True)
    #: When its occurrence may leave: `due_at` plus jitter.
    wake_at = UTCDateTimeField(null=True)
    #: Where the grid of an interval without `start_time` begins: the task's creation, or its last run when taken over.
    anchor = UTCDateTimeField()
    #: The water mark: every nominal time up to this one has been decided, also after its occurrence has been pruned.
    water_mark = UTCDateTimeField(null=True)
    #: Since when the copied definition below holds; None where it is not known (planned by an older version).
    definition_since = UTCDateTimeField(null=True)
    #: Under `overlap = skip`: the occurrence claimed last, which the next one waits for. Not a key: it may be pruned.
    open_occurrence = models.BigIntegerField(null=True)
    #: Grows with every write; a write names the version it read.
    version = models.BigIntegerField(default=0)
    #: Why the task is quarantined; empty when it is not.
    quarantine = models.TextField(default="", blank=True)
    # The definition it was planned from, as plain copies, so that a change made by any hand shows in one comparison.
    # Times are copied as the task's own columns hold them.
    enabled = models.BooleanField()
    one_off = models.BooleanField()
    interval = models.IntegerField(null=True)
    crontab = models.IntegerField(null=True)
    solar = models.IntegerField(null=True)
    clocked = models.IntegerField(null=True)
    #: The schedule's value as text; empty for a clocked one, whose value is `clocked_time`.
    rule = models.CharField(max_length=700, default="", blank=True)
    clocked_time = models.DateTimeField(null=True)
    start_time = models.DateTimeField(null=True)
    expires = models.DateTimeField(null=True)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_taskstate"
        verbose_name = _("plan")
        verbose_name_plural = _("plans")
        indexes = [
            models.Index(fields=["wake_at"], name="onebeat_taskstate_wake"),
            Partial(fields=["task"], name="onebeat_taskstate_aside", where=models.Q(quarantine__gt="")),
            Partial(fields=["task"], name="onebeat_taskstate_ended", where=models.Q(due_at=None, enabled=True)),
        ]

    def __str__(self) -> str:
        return f"task {self.task_id}, due {self.due_at}"


@fields.quiet
class Occurrence(models.Model):
    """One nominal time of one task, and what became of it: the ledger."""

    class State(models.TextChoices):
        CLAIMED = "claimed"
        SENT = "sent"
        STARTED = "started"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        SKIPPED = "skipped"

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(
        "django_celery_beat.PeriodicTask",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,  # an index below begins with it
        related_name="onebeat_occurrences",
    )
    #: `TaskState.uid` of the task that it was claimed for. The key above may be another task's by now.
    task_uid = models.BigIntegerField(default=0)
    #: The task's name when this was recorded: it stays readable when the task is gone.
    task_name = models.CharField(max_length=200)
    due_at = UTCDateTimeField()
    #: 0 for the schedule's own; a run by hand or a replay has its own number.
    run = models.IntegerField(default=0)
    #: Of a skipped range: its last nominal time. None for a single one.
    last_due_at = UTCDateTimeField(null=True)
    state = models.CharField(max_length=10, choices=State.choices)
    reason = models.CharField(max_length=20, default="", blank=True)
    detail = models.TextField(default="", blank=True)
    #: Of a skipped one: the nominal time that stands for it (coalesced), or that was still running (overlap).
    into_at = UTCDateTimeField(null=True)
    #: The id its message carries, however often it is published.
    celery_task_id = models.UUIDField()
    #: Names the claim, and its batch: whoever holds this number may publish and settle while the state is `claimed`.
    claim_token = models.BigIntegerField(null=True)
    #: How many times it was claimed: more than one means that a scheduler was lost on the way.
    claims = models.SmallIntegerField(default=0)
    #: How many times publishing it failed by itself although the broker answered; `detail` has the last error.
    publish_failures = models.SmallIntegerField(default=0, db_default=0)
    #: The scheduler that claimed it last.
    beat = models.ForeignKey(
        "django_celery_beat.Beat",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
    )
    decided_at = UTCDateTimeField()
    sent_at = UTCDateTimeField(null=True)
    # What workers tell, of the newest attempt. `db_default`: an older version inserts rows without them.
    #: The attempt that has started: 0, then one more for each retry. None: none has, or it was put back.
    attempt = models.IntegerField(null=True)
    #: Names the start: whoever holds this number is the attempt and records its end.
    start_token = models.BigIntegerField(null=True)
    started_at = UTCDateTimeField(null=True)
    #: When the attempt ended. With state `started`: another one follows.
    finished_at = UTCDateTimeField(null=True)
    #: The node name of the worker.
    worker = models.CharField(max_length=255, default="", db_default="", blank=True)
    #: How the attempt ended, in one word; see `onebeat.store.attempts.Outcome`.
    outcome = models.CharField(max_length=12, default="", db_default="", blank=True)
    #: What it raised, or why it did not run; short.
    error = models.CharField(max_length=500, default="", db_default="", blank=True)
    #: How many second copies of an attempt came to a worker.
    duplicate_deliveries = models.IntegerField(default=0, db_default=0)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_occurrence"
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")
        constraints = [
            models.UniqueConstraint(fields=["task_uid", "due_at", "run"], name="onebeat_occurrence_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=["claimed", "sent", "started", "succeeded", "failed", "skipped"]),
                name="onebeat_occurrence_state",
            ),
            models.CheckConstraint(condition=~models.Q(state="skipped", reason=""), name="onebeat_occurrence_reason"),
        ]
        # None names a column that changes when a run is settled, starts and ends well: then PostgreSQL writes the new
        # version beside the old one and no index learns of it.
        indexes = [
            models.Index(fields=["task", "due_at"], name="onebeat_occurrence_task"),
            models.Index(fields=["claim_token"], name="onebeat_occurrence_batch"),
            Partial(fields=["reason", "id"], name="onebeat_occurrence_why", where=models.Q(reason__gt="")),
            Partial(fields=["id"], name="onebeat_occurrence_error", where=models.Q(error__gt="")),
        ]

    def __str__(self) -> str:
        return f"{self.task_name} at {self.due_at}: {self.state}"

    @property
    def duration(self) -> timedelta | None:
        """How long the newest attempt took; None while it runs and when none has run."""
        began, ended = self.started_at, self.finished_at
        return ended - began if isinstance(began, datetime) and isinstance(ended, datetime) else None


class ClaimedBatch(models.Model):
    """The occurrences of one claim that are not settled yet, and who holds them until when."""

    #: The `claim_token` of its occurrences.
    token = models.BigIntegerField(primary_key=True)
    #: The key of the holder's `Beat`; None: nobody holds it, and anyone may claim it when its lease has ended.
    holder = models.BigIntegerField(null=True)
    lease_until = UTCDateTimeField()

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_batch"
        # What waits and is nobody's is asked for in each tick.
        indexes = [models.Index(fields=["holder", "lease_until"], name="onebeat_batch_lease")]

    def __str__(self) -> str:
        return f"batch {self.token} until {self.lease_until}"


@fields.quiet
class Change(models.Model):
    """A hint that something a person edits has changed, inserted in their transaction and deleted by the engine.

    Append-only, so that no two transactions of users ever meet on a row, and a rollback takes the hint with it.
    """

    class Kind(models.TextChoices):
        TASK = "task"
        INTERVAL = "interval"
        CRONTAB = "crontab"
        SOLAR = "solar"
        CLOCKED = "clocked"

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    #: The primary key of the changed row.
    ref = models.BigIntegerField()
    #: When, by the database's clock.
    at = UTCDateTimeField()
    #: Whether the change left the task disabled: enabled again before anybody looks, it would seem never to have been.
    left_disabled = models.BooleanField(default=False, db_default=False)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_change"

    def __str__(self) -> str:
        return f"{self.kind} {self.ref} changed at {self.at}"


class Beat(models.Model):
    """One scheduler process."""

    class Unable(models.TextChoices):
        """Why a scheduler that is at work cannot send, or does not."""

        BROKER_UNAVAILABLE = "broker_unavailable", "its broker does not answer"
        BROKER_REFUSES = "broker_refuses", "its broker answers and accepts no message"
        STANDBY = "standby", "another beat sends the same tasks"
        CLASSIC = "classic", "it runs in classic mode, which does not report whether it can send"

    id = models.BigAutoField(primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.BigIntegerField()
    version = models.CharField(max_length=40)
    started_at = UTCDateTimeField()
    seen_at = UTCDateTimeField()
    #: Since when it has been able to send without a break; None while it is not, or after it stopped.
    able_since = UTCDateTimeField(null=True)
    #: Why it is not able to send; empty while it is, and until it has reported for the first time.
    unable_reason = models.CharField(max_length=20, choices=Unable.choices, default="", db_default="", blank=True)
    #: The last time it said that it was able to send; stays when it no longer is.
    able_until = UTCDateTimeField(null=True)
    #: How late the oldest due task was at the last look, in milliseconds.
    lag_ms = models.BigIntegerField(default=0)
    #: This host's clock minus the database's, in milliseconds.
    skew_ms = models.BigIntegerField(default=0)
    #: How many messages it could not hand over since it started, each try counted.
    failed = models.BigIntegerField(default=0, db_default=0)
    #: How many it has sent, and skipped by reason, since it started: a JSON object.
    tally = models.TextField(default="{}", db_default="{}")
    stopped_at = UTCDateTimeField(null=True)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_beat"
        verbose_name = _("scheduler")
        verbose_name_plural = _("schedulers")

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Fact(models.Model):
    """Something this database remembers about itself, such as the namespace of its task ids."""

    name = models.CharField(max_length=40, primary_key=True)
    value = models.TextField()

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_fact"

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


@fields.quiet
class Outage(models.Model):
    """A stretch in which no scheduler was able to send. Written when it is over, by whoever is able first."""

    class Kind(models.TextChoices):
        DOWN = "down", "no scheduler was at work"
        BROKER = "broker", "the broker was away"
        DATABASE = "database", "the schedulers were at work and could not reach the database"

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: The last time that some scheduler said it was able to send: true to a few seconds.
    began_at = UTCDateTimeField()
    ended_at = UTCDateTimeField()

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_outage"
        constraints = [models.UniqueConstraint(fields=["began_at"], name="onebeat_outage_began")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} from {self.began_at} to {self.ended_at}"


class Lease(models.Model):
    """Who does a piece of housekeeping now. The term grows each time it changes hands: the database issues it."""

    name = models.CharField(max_length=40, primary_key=True)
    term = models.BigIntegerField(default=0)
    #: The key of the holder's `Beat`.
    holder = models.BigIntegerField(null=True)
    lease_until = UTCDateTimeField()
    #: Where the next holder goes on.
    place = models.BigIntegerField(default=0)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_lease"

    def __str__(self) -> str:
        return f"{self.name}, term {self.term}"


class Action(models.Model):
    """Something that a person or a program did to a task by one of the verbs: who, when, why. Append-only."""

    id = models.BigAutoField(primary_key=True)
    #: When, by the database's clock.
    at = UTCDateTimeField()
    #: "pause", "resume", "skip", "run_now", "cancel", "reschedule", "renew", "enable", "disable", "duplicate", "sync".
    verb = models.CharField(max_length=20)
    #: None: it was done to all tasks at once.
    task = models.ForeignKey(
        "django_celery_beat.PeriodicTask",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="onebeat_actions",
    )
    task_name = models.CharField(max_length=200, default="", blank=True)
    by = models.CharField(max_length=200, default="", blank=True)
    why = models.TextField(default="", blank=True)
    #: What exactly: the instant skipped, the end of the pause, the id of the run.
    detail = models.TextField(default="", blank=True)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_action"
        verbose_name = _("action")
        verbose_name_plural = _("actions")
        indexes = [models.Index(fields=["task", "id"], name="onebeat_action_task")]

    def __str__(self) -> str:
        return f"{self.verb} {self.task_name or 'all tasks'} at {self.at}"
