"""Creates and deletes placeholder pods, on the write pool; what fails is planned for again."""

from collections.abc import Callable

import structlog

from driver import errors
from driver.controller import ports
from driver.controller.commit import write_pool
from driver.kube import gvr, workqueue
from driver.resources.core import pods
from driver.scheduling.provisioning import placeholder
from driver.scheduling.provisioning import settings as provisioning_settings

_log = structlog.get_logger(__name__)
_RETRY_S = 1.0


class PlaceholderWriter:
    """Thread safe. Calls return at once."""

    def __init__(
        self,
        writer: ports.Writer,
        pool: write_pool.WritePool,
        items: workqueue.WorkQueue[write_pool.WorkItem],
        how: provisioning_settings.ProvisionerSettings,
    ) -> None:
        self._writer = writer
        self._pool = pool
        self._items = items
        self._settings = how

    def create(
        self,
        node_request: placeholder.NodeRequest,
        refused: Callable[[placeholder.NodeRequest, str], None],
    ) -> None:
        """Create the pod of a request; `refused` is called on the pool with a lasting error, or "".

        Requests without an answer are repeated by the same name.
        """
        body = placeholder.render(node_request, self._settings.namespace, self._settings.image)
        self._pool.run(lambda: self._create(node_request, body, refused))

    def _create(
        self,
        node_request: placeholder.NodeRequest,
        body: dict[str, object],
        refused: Callable[[placeholder.NodeRequest, str], None],
    ) -> None:
        try:
            self._writer.create(gvr.PODS, body, self._settings.namespace)
        except errors.AlreadyExists:
            return
        except errors.RationError as error:
            _log.warning("node not asked for", shape=node_request.template.name, error=str(error))
            lasting = isinstance(error, errors.Forbidden | errors.Invalid)
            refused(node_request, str(error) if lasting else "")
            self._items.add_after(write_pool.PROVISIONING, _RETRY_S)

    def delete(self, pod: pods.Pod, failed: Callable[[pods.Pod], None]) -> None:
        """Delete a pod; `failed` is called on the pool if it stays."""
        self._pool.run(lambda: self._delete(pod, failed))

    def _delete(self, pod: pods.Pod, failed: Callable[[pods.Pod], None]) -> None:
        try:
            self._writer.delete(gvr.PODS, pod.name, pod.namespace, uid=pod.uid)
        except errors.NotFound:
            return
        except errors.RationError as error:
            _log.info("pod that asks for a node not deleted", pod=pod.key, error=str(error))
            failed(pod)
            self._items.add_after(write_pool.PROVISIONING, _RETRY_S)
