"""Message types built without a compiler, in a descriptor file and as a generated module."""

import pytest
from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto


def message(name, *fields, nested=(), enums=(), oneofs=(), map_entry=False):
    """A message; each field is (name, number, type, *marks)."""
    found = descriptor_pb2.DescriptorProto(name=name)
    found.options.map_entry = map_entry
    for oneof in oneofs:
        found.oneof_decl.add(name=oneof)
    for field_name, number, kind, *marks in fields:
        field = found.field.add(name=field_name, number=number, label=Field.LABEL_OPTIONAL)
        if kind.startswith("."):
            field.type_name = kind
            field.type = Field.TYPE_ENUM if "enum" in marks else Field.TYPE_MESSAGE
        else:
            field.type = getattr(Field, f"TYPE_{kind.upper()}")
        for mark in marks:
            if mark in ("repeated", "required"):
                field.label = getattr(Field, f"LABEL_{mark.upper()}")
            elif mark.startswith("default="):
                field.default_value = mark.removeprefix("default=")
            elif mark.startswith("oneof="):
                field.oneof_index = oneofs.index(mark.removeprefix("oneof="))
            elif mark == "optional":
                field.proto3_optional = True
    found.nested_type.extend(nested)
    found.enum_type.extend(enums)
    return found


def enum(name, **values):
    found = descriptor_pb2.EnumDescriptorProto(name=name)
    for text, number in values.items():
        found.value.add(name=text, number=number)
    return found


def entry(name, key, value, *marks):
    return message(name, ("key", 1, key), ("value", 2, value, *marks), map_entry=True)


CORPUS = enum("Corpus", UNIVERSAL=0, WEB=1, IMAGES=2)
TWO = descriptor_pb2.FileDescriptorProto(
    name="two.proto",
    package="two",
    syntax="proto2",
    dependency=["google/protobuf/timestamp.proto"],
    message_type=[
        message(
            "Simple",
            ("a", 1, "int32", "default=10"),
            ("b", 2, "int64", "default=100"),
            ("c", 3, "bool"),
            ("d", 4, "float"),
            ("e", 5, "double"),
            ("f", 6, "string", "default=f"),
            ("g", 7, "bytes"),
            ("h", 8, ".two.Simple.Corpus", "enum"),
            ("u", 9, "uint32"),
            ("v", 10, "uint64"),
            enums=[CORPUS],
        ),
        message(
            "Containers",
            ("ints", 1, "int32", "repeated"),
            ("texts", 2, "string", "repeated"),
            ("rows", 3, ".two.Containers.Inner", "repeated"),
            ("to_text", 4, ".two.Containers.ToTextEntry", "repeated"),
            ("to_row", 5, ".two.Containers.ToRowEntry", "repeated"),
            ("inner", 6, ".two.Containers.Inner"),
            ("kinds", 7, ".two.Simple.Corpus", "enum", "repeated"),
            ("blobs", 8, "bytes", "repeated"),
            ("flags", 9, "bool", "repeated"),
            ("to_kind", 10, ".two.Containers.ToKindEntry", "repeated"),
            nested=[
                message(
                    "Inner", ("x", 1, "int32"), ("y", 2, "int64"), ("z", 3, ".two.Containers.Inner")
                ),
                entry("ToTextEntry", "string", "string"),
                entry("ToRowEntry", "int32", ".two.Containers.Inner"),
                entry("ToKindEntry", "string", ".two.Simple.Corpus", "enum"),
            ],
        ),
        message(
            "Choice",
            ("a", 1, "int32", "oneof=which"),
            ("b", 2, "int32", "oneof=which"),
            oneofs=["which"],
        ),
        message("Strict", ("id", 1, "int32", "required"), ("name", 2, "string")),
        message("Event", ("id", 1, "string"), ("ts", 2, ".google.protobuf.Timestamp")),
        message("New", ("a", 1, "int32"), ("extra", 99, "string")),
        message("Old", ("a", 1, "int32")),
        message("Big", *((f"f{n}", n, "int32") for n in range(1, 1001))),
    ],
)
THREE = descriptor_pb2.FileDescriptorProto(
    name="three.proto",
    package="three",
    syntax="proto3",
    message_type=[
        message(
            "Plain",
            ("a", 1, "int32"),
            ("b", 2, "int64"),
            ("c", 3, "string"),
            ("d", 4, "float"),
            ("e", 5, "double"),
            ("f", 6, ".three.Corpus", "enum"),
            ("g", 7, ".three.Plain.Inner"),
            ("h", 8, ".three.Plain.Inner", "repeated"),
            ("i", 9, "bytes"),
            ("m", 10, ".three.Plain.MEntry", "repeated"),
            ("o", 11, "int32", "optional", "oneof=_o"),
            ("left", 12, "int32", "oneof=side"),
            ("right", 13, "string", "oneof=side"),
            nested=[
                message("Inner", ("a", 1, "int32"), ("b", 2, "int64")),
                entry("MEntry", "string", "string"),
            ],
            oneofs=["side", "_o"],
        ),
    ],
    enum_type=[CORPUS],
)


def proto_set(*files):
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


@pytest.fixture(scope="session")
def descriptors(tmp_path_factory):
    """A descriptor file that leaves out what every installation has."""
    path = tmp_path_factory.mktemp("protobuf") / "types.bin"
    path.write_bytes(proto_set(TWO, THREE))
    return path


@pytest.fixture
def options(descriptors):
    """Options of a table for one of the messages."""

    def build(name, **more):
        more = {key.replace("_", "-"): value for key, value in more.items()}
        return {"message-class-name": name, "descriptor-file": str(descriptors), **more}

    return build


@pytest.fixture
def make(descriptors):
    """Messages as another program would have written them."""
    from streamcore_formats.protobuf.descriptors import message_class

    def build(name, **values):
        return message_class(name, str(descriptors))(**values).SerializeToString(deterministic=True)

    return build
