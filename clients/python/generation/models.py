"""The pydantic models of requests and answers."""

import json
import re
import tempfile
from pathlib import Path

from datamodel_code_generator import GenerateConfig, LiteralType, PythonVersion, generate
from datamodel_code_generator.enums import CollapseRootModelsNameStrategy, DataModelType, InputFileType
from datamodel_code_generator.format import Formatter

from .document import Document

HEAD = '"""The requests and answers of the service. Each field has the description of the OpenAPI document."""'


def source(document: Document) -> str:
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "models.py"
        generate(
            json.dumps(document.for_models()),
            config=GenerateConfig(
                input_filename="openapi.json",
                input_file_type=InputFileType.OpenAPI,
                output=output,
                output_model_type=DataModelType.PydanticV2BaseModel,
                target_python_version=PythonVersion.PY_310,
                base_class="tao_slurm._model.Model",
                use_schema_description=True,
                use_field_description=True,
                use_attribute_docstrings=True,
                use_annotated=True,
                collapse_root_models=True,
                collapse_root_models_name_strategy=CollapseRootModelsNameStrategy.Child,
                enum_field_as_literal=LiteralType.One,
                use_typed_nullable_map_values=True,
                capitalise_enum_members=True,
                use_double_quotes=True,
                formatters=[Formatter.BUILTIN],
                custom_file_header=HEAD,
                disable_timestamp=True,
            ),
        )
        return open_enums(output.read_text())


def open_enums(text: str) -> str:
    """Enums that keep a value that only a newer service knows. Models do not read their own source when they are imported."""
    text = text.replace("        use_attribute_docstrings=True,\n", "").replace("ConfigDict(\n    )", "ConfigDict()")
    text = re.sub(r"^from enum import .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^class (\w+)\((?:str, )?(?:Enum|StrEnum)\):", r"class \1(OpenEnum):", text, flags=re.MULTILINE)
    return text.replace("from tao_slurm._model import Model", "from tao_slurm._model import Model, OpenEnum")
