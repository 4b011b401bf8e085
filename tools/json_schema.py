"""Checks a document against the JSON Schema that `ridgeline schema` prints: the words that it uses, and no others."""
import json
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "additionalProperties", "items",
         "anyOf", "enum", "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "minLength"}


def is_a(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def mistakes(value, schema, root, place=""):
    """What is wrong with `value`: texts that begin with the place; empty where nothing is."""
    if schema is True or schema == {}:
        return []
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"the checker does not know {sorted(unknown)}")
    found = []
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        found += mistakes(value, root["$defs"][name], root, place)
    if "anyOf" in schema:
        tried = [mistakes(value, one, root, place) for one in schema["anyOf"]]
        if all(tried):  # the form that goes furthest tells most
            found += max(tried, key=lambda wrong: max(len(one.split(": ")[0]) for one in wrong))
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(is_a(value, name) for name in names):
            return found + [f"{place}: {json.dumps(value)[:60]} is no {' or '.join(names)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{place}: {value!r} is not {schema['const']!r}")
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{place}: {value!r} is not like {schema['pattern']}")
        if len(value) < schema.get("minLength", 0):
            found.append(f"{place}: too short")
    if is_a(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value) or \
                ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]):
            found.append(f"{place}: {value} is out of range")
    if isinstance(value, dict):
        found += of_object(value, schema, root, place)
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += mistakes(item, schema.get("items", {}), root, f"{place}.{i}")
    return found


def of_object(value, schema, root, place):
    found = [f"{place}.{key}: missing" for key in schema.get("required", []) if key not in value]
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key, inner in value.items():
        if key in properties:
            found += mistakes(inner, properties[key], root, f"{place}.{key}")
        elif rest is False:
            found.append(f"{place}.{key}: no such key")
        else:
            found += mistakes(inner, rest, root, f"{place}.{key}")
    return found
