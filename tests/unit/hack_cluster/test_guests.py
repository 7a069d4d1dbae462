from hack.cluster import guests


def test_a_text_of_several_documents_is_read_without_the_empty_ones() -> None:
    text = "---\n# nothing\n---\nkind: Role\n---\nkind: Pod\n"
    assert [entry["kind"] for entry in guests.read(text)] == ["Role", "Pod"]


def test_objects_replaced_by_a_process_are_left_out_by_kind() -> None:
    objects = [{"kind": kind} for kind in ("Deployment", "Role", "Deployment")]
    assert guests.without(objects, "Deployment") == [{"kind": "Role"}]
