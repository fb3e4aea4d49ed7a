"""Files of records, docs/measurements/<machine>/<day>.jsonl, for the scripts beside this one.

JSON Lines: the first line is a header with what most records have in common, each line after it one
record, which may override a key of the header. common/bench/record_file.hpp does the same in C++,
and says more.
"""

import collections
import json

FORMAT = "course records 1"
HOST = "host CPU"  # the device of a record that was measured on the host's CPU
# Of the run and of the machine, not of a version.
HEADER_KEYS = [
    "day",
    "device",
    "driver",
    "cuda",
    "compiler",
    "limit_bytes_per_second",
    "limit_flops_per_second",
    "commit",
    "date",
]


def read(path):
    """The list of records in the file at `path`, each with the keys of the header that it does not
    override.
    """
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if not lines:
        return []
    header = lines[0]
    if header.pop("format", None) != FORMAT:
        raise ValueError(f'{path}: the first line is no header; expected an object with "format": "{FORMAT}"')
    return [header | record for record in lines[1:]]


def write(path, records):
    """Writes `records` to the file at `path`."""
    objects = []
    if records:
        header = {"format": FORMAT}
        for key in HEADER_KEYS:
            if all(
                key in record for record in records
            ):  # a record cannot say that it lacks a key of the header
                header[key] = collections.Counter(record[key] for record in records).most_common(1)[0][0]
        objects = [header] + [
            {key: value for key, value in record.items() if key not in header or value != header[key]}
            for record in records
        ]
    path.write_text(
        "".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in objects)
    )
