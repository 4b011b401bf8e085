"""The steps of a recording: the first and the last whole one are kept, of those between only what they leave in memory."""


def what_stays(records):
    """Births and deaths of storages that outlive these records, or were there before them; modules."""
    born = {record["id"] for record in records if record["record"] == "storage"}
    freed = {record["id"] for record in records if record["record"] == "free"}
    passing = born & freed
    return [record for record in records
            if record["record"] == "module" or record["record"] in ("storage", "free") and record["id"] not in passing]


def renumbered(records):
    """The same records with ids of storages that count up from 0."""
    ids = {}
    for record in records:
        if record["record"] == "storage":
            record["id"] = ids.setdefault(record["id"], len(ids))
        elif record["record"] == "free":
            record["id"] = ids[record["id"]]
        for value in [*record.get("in", ()), *record.get("out", ())]:
            if isinstance(value, dict):
                for tensor in value.get("tensors", [value]):
                    if tensor.get("storage") is not None:
                        tensor["storage"] = ids[tensor["storage"]]
    return records


class Steps:
    """`records` is the list that is written to; it is emptied where a step ends."""

    def __init__(self, records):
        self.records, self.count = records, 0
        self.first, self.between, self.last = [], [], []

    def end(self):
        """Of a step; the next one begins."""
        self.count += 1
        if self.count == 1:
            self.first = self.records[:]
        else:
            self.between = what_stays(self.between + self.last)
            self.last = self.records[:]
        self.records[:] = []

    def whole(self):
        """All records up to the end of the last whole step: the first step begins where its mark stands."""
        parts = self.first + [{"record": "end"}]
        for part in (self.between, self.last):
            if part:
                parts += [{"record": "step"}, *part, {"record": "end"}]
        return renumbered(parts)
