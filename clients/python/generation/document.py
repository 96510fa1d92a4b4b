"""The OpenAPI document as the generators need it."""

import re
from typing import Any, Iterator

Json = dict[str, Any]
# The service checks values, and a newer one may allow more.
LIMITS = {
    "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
    "pattern", "propertyNames", "uniqueItems", "example", "examples", "default", "writeOnly",
}
METHODS = ("get", "post", "put", "delete")
# The data of streamed events. No JSON answer names them.
STREAMED = ("StreamedEvent", "LogEvent")


class Document:
    def __init__(self, document: Json) -> None:
        self.document = document
        self.schemas: Json = document["components"]["schemas"]

    def operations(self) -> Iterator[tuple[str, str, Json]]:
        """Path, method and description of each call of the service's own API, without TAO's calls."""
        for path, methods in self.document["paths"].items():
            if not path.startswith("/api/"):
                for method in METHODS:
                    if method in methods:
                        yield path, method, methods[method]

    def used(self) -> set[str]:
        """The schemas that an operation or a stream uses."""
        found: set[str] = set()
        left = set(STREAMED).union(*(references(operation) for _, _, operation in self.operations()))
        while left:
            name = left.pop()
            found.add(name)
            left |= references(self.schemas[name]) - found
        return found

    def requests(self) -> set[str]:
        """The schemas that a body is made of."""
        bodies = [references(operation.get("requestBody", {})) for _, _, operation in self.operations()]
        found: set[str] = set()
        left = set().union(*bodies)
        while left:
            name = left.pop()
            found.add(name)
            left |= references(self.schemas[name]) - found
        return found

    def for_models(self) -> Json:
        """The document with schemas that accept the answers of newer services."""
        requests = self.requests()
        schemas = {name: bare(self.schemas[name]) for name in sorted(self.used())}
        for name, schema in schemas.items():
            if name not in requests:
                for part in (schema, *schema.get("allOf", ())):
                    relax(part)
        for name in list(schemas):
            name_enums(schemas, name)
        info = {"title": "tao-slurm", "version": "0"}
        return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}


def references(value: Any) -> set[str]:
    """The names of the schemas that a part of the document refers to."""
    return set(re.findall(r"'\$ref': '#/components/schemas/(\w+)'", str(value)))


def bare(schema: Any, properties: bool = False) -> Any:
    """The schema without limits. The keys of `properties` are names of fields."""
    if isinstance(schema, dict):
        return {
            key: bare(value, key == "properties" and not properties)
            for key, value in schema.items()
            if properties or key not in LIMITS
        }
    if isinstance(schema, list):
        return [bare(value) for value in schema]
    return schema


def relax(schema: Json) -> None:
    """A field that can be null may also be missing."""
    fields = schema.get("properties", {})
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if not can_be_null(fields.get(name, {}))]


def can_be_null(field: Json) -> bool:
    return "null" in field.get("type", ()) or {"type": "null"} in field.get("oneOf", ())


def name_enums(schemas: Json, owner: str) -> None:
    """Gives an enum inside of a schema a name of its own, after the schema and the field."""
    places = [(schemas[owner].get("properties", {}), name) for name in schemas[owner].get("properties", {})]
    places += [(dict(enumerate(schemas[owner].get("oneOf", ()))), at) for at in range(len(schemas[owner].get("oneOf", ())))]
    for place, key in places:
        if len(place[key].get("enum", ())) > 1:
            name = owner + (str(key).title().replace("_", "") if isinstance(key, str) else "Name")
            schemas[name] = place[key]
            reference = {"$ref": f"#/components/schemas/{name}"}
            if isinstance(key, str):
                place[key] = reference
            else:
                schemas[owner]["oneOf"][key] = reference
