"""NVML calls about events."""

from dataclasses import dataclass

from simulator import client, codes, events


@dataclass(frozen=True, slots=True)
class EventData:
    """`nvmlEventData_t`; instance ids are `codes.WHOLE_GPU` for the GPU as a whole."""

    device: client.Handle
    event_type: int
    event_data: int
    gpu_instance_id: int
    compute_instance_id: int


class EventCalls(client.Client):
    """Events that came before a registration are lost; each is delivered once to each set."""

    @client.call
    def event_set_create(self) -> client.Handle:
        """An empty set."""
        return client.Handle(self.machine.open_events(privileged=self._root))

    @client.call
    def event_set_free(self, event_set: client.Handle) -> None:
        """Its events are gone."""
        self._events(event_set)
        del self.machine.event_sets[event_set]

    @client.call
    def device_get_supported_event_types(self, device: client.Handle) -> int:
        """What may be registered."""
        product = self._gpu(device).product
        supported = events.PLAIN
        if product.ecc:
            supported |= events.ECC
        if product.mig:
            supported |= events.EventType.MIG_CONFIG
        if self.machine.driver_major >= events.NEWER_SINCE:
            supported |= events.NEWER
        return int(supported)  # ~ of an IntFlag knows its own bits only

    @client.call
    def device_register_events(
        self, device: client.Handle, event_types: int, event_set: client.Handle
    ) -> None:
        """Whole GPUs only; NOT_SUPPORTED, and nothing registered, for a type that is not."""
        gpu = self._gpu(device)
        masks = self._events(event_set).masks
        if event_types & ~self.device_get_supported_event_types(device):
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        masks[gpu.slot.pci] = masks.get(gpu.slot.pci, 0) | event_types

    @client.call
    def event_set_wait(self, event_set: client.Handle, timeout_ms: int) -> EventData:
        """The oldest event; TIMEOUT without one, GPU_IS_LOST with one of its GPUs lost.

        It does not block: the node process asks again until `timeout_ms` have passed.
        """
        del timeout_ms
        waiting = self._events(event_set)
        if waiting.queue:
            event = waiting.queue.popleft()
            gpu = self.machine.find(event.pci)
            return EventData(
                device=client.Handle(f"gpu/{gpu.bus_id}"),
                event_type=event.type,
                event_data=event.data,
                gpu_instance_id=event.gpu_instance,
                compute_instance_id=event.compute_instance,
            )
        if any(self.machine.board(self.machine.find(pci)).lost for pci in waiting.masks):
            raise codes.NvmlError(codes.Return.GPU_IS_LOST)
        raise codes.NvmlError(codes.Return.TIMEOUT)

    def _events(self, event_set: client.Handle) -> events.EventSet:
        if not event_set.startswith("events/"):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        found = self.machine.event_sets.get(event_set)
        if found is None:  # freed, or of a driver that was unloaded since
            raise codes.NvmlError(codes.Return.UNKNOWN)
        return found
