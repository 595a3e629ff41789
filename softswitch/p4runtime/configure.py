"""SetForwardingPipelineConfig: which pipeline is live, and which is saved for a later COMMIT."""

from __future__ import annotations

import threading

from finsy.proto import p4r

from softswitch.p4runtime import pipeline as pipelines
from softswitch.p4runtime.arbitration import Arbitration
from softswitch.p4runtime.errors import denied, invalid, not_found
from softswitch.p4runtime.events import EventPump, Notifier
from softswitch.p4runtime.pipeline import Pipeline, Target, TargetError
from softswitch.p4runtime.reconcile import replay

_Request = p4r.SetForwardingPipelineConfigRequest


class Configurator:
    """The pipelines of one device, on the devices that ``target`` makes.

    ``live`` handles packets. ``pipeline`` is what Write and Read refer to: the saved one between VERIFY_AND_SAVE and
    COMMIT, on a device of its own which COMMIT makes live, else the live one. ``lock`` excludes Write and Read;
    ``live_lock`` excludes the exchange of the live device alone, so that packets do not wait for long Writes.
    """

    def __init__(self, target: Target, arbitration: Arbitration, lock: threading.Lock) -> None:
        self.live: Pipeline | None = None
        self.pipeline: Pipeline | None = None
        self.live_lock = threading.Lock()
        self.target = target
        self._arbitration = arbitration
        self._lock = lock
        self._serial = threading.Lock()  # one request after another; a build takes seconds
        self._pump: EventPump | None = None

    def set(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Do what the request says. Raises P4Error; the pipelines are then as they were."""
        with self._serial:
            self._check_sender(request)
            action, given = request.action, request.HasField("config")
            if action == _Request.COMMIT:
                if given:
                    raise invalid("COMMIT takes no config: it commits the one that VERIFY_AND_SAVE saved")
                self._commit_saved(request)
                return
            if action not in _WITH_CONFIG:
                raise invalid(f"unknown action {action}; valid: {', '.join(_Request.Action.keys()[1:])}")
            if not given:
                raise invalid(f"{_Request.Action.Name(action)} needs a config")
            made = pipelines.build(request.config, self.target)
            try:
                self._use(made, request)
            except BaseException:
                made.close()
                raise

    def commit(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Make a config live, not on a controller's behalf. Raises P4Error."""
        with self._serial:
            made = pipelines.build(config, self.target)
            with self._lock:
                self._activate(made)

    def _check_sender(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        ident = request.election_id if request.HasField("election_id") else None
        permissions = self._arbitration.require_primary(request.role, ident)
        if permissions is not None and not permissions.pushes_pipeline:
            raise denied(f"role {request.role} may not set the forwarding pipeline")

    def _use(self, made: Pipeline, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        if request.action == _Request.VERIFY:
            made.close()
            return
        with self._lock:
            self._check_sender(request)  # the build took its time
            if request.action == _Request.VERIFY_AND_SAVE:
                self._drop_saved()
                self.pipeline = made
                return
            if request.action == _Request.RECONCILE_AND_COMMIT and self.live is not None:
                replay(self.live, made)
            self._activate(made)

    def _commit_saved(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        with self._lock:
            saved = self.pipeline
            if saved is None or saved is self.live:
                raise not_found("there is no saved config; VERIFY_AND_SAVE comes first")
            self._activate(saved)

    def _drop_saved(self) -> None:
        if self.pipeline is not None and self.pipeline is not self.live:
            self.pipeline.close()
        self.pipeline = self.live

    def _activate(self, made: Pipeline) -> None:
        if made is not self.pipeline:
            self._drop_saved()
        self._stop_pump()
        try:
            with self.live_lock:
                self.target.activate(made.device)
                if self.live is not None:
                    self.live.closed = True
                self.live = self.pipeline = made
        except TargetError as error:
            raise invalid(f"the program cannot be realized: {error}") from error
        finally:
            if self.live is not None:
                self._pump = EventPump(self.live.device, Notifier(self.live, self._arbitration))
                self._pump.start()

    def _stop_pump(self) -> None:
        if self._pump is not None:
            self._pump.stop()
            self._pump = None

    def close(self) -> None:
        """Forget the pipelines; the live device stays with the target."""
        with self._serial, self._lock:
            self._stop_pump()
            self._drop_saved()
            with self.live_lock:
                if self.live is not None:
                    self.live.closed = True
                self.live = self.pipeline = None


_WITH_CONFIG = frozenset(
    {_Request.VERIFY, _Request.VERIFY_AND_SAVE, _Request.VERIFY_AND_COMMIT, _Request.RECONCILE_AND_COMMIT}
)
