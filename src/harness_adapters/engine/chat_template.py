"""Our own chat template: ChatML with tools in the system turn and calls as fenced JSON.

For models whose own template knows no tools, or whose tool tags are tokens that were never
trained. Everything in it is made of tokens that any small ChatML model knows. Calls look the same
in the instruction and in histories, so a model that imitates either writes the right form.

The template is Jinja as transformers and vLLM run it; it is saved with the tokenizer of embedded
models, so that a plain `vllm serve` renders exactly what training rendered.
"""

from __future__ import annotations

MARK = "{#- harness-adapters chatml-json 1 -#}"
"""First line of the template: how a saved tokenizer is recognised as ours."""

CHATML_JSON = (
    MARK
    + r"""
{%- macro type_of(schema) -%}
  {%- if schema.enum is defined -%}
    {%- for value in schema.enum -%}
      {{- ("|" if not loop.first else "") + (value|tojson) -}}
    {%- endfor -%}
  {%- elif schema.anyOf is defined or schema.oneOf is defined -%}
    {%- for option in (schema.anyOf or schema.oneOf) -%}
      {{- ("|" if not loop.first else "") + type_of(option) -}}
    {%- endfor -%}
  {%- elif schema.type is defined and schema.type is not string -%}
    {{- schema.type|join("|") -}}
  {%- elif schema.type == "array" -%}
    {{- "[" + (type_of(schema["items"]) if schema["items"] is mapping else "any") + "]" -}}
  {%- elif schema.properties -%}
    {{- "{" + fields_of(schema) + "}" -}}
  {%- else -%}
    {{- schema.type or "any" -}}
  {%- endif -%}
{%- endmacro -%}
{%- macro fields_of(schema) -%}
  {%- for name, field in (schema.properties or {}).items() -%}
    {{- (", " if not loop.first else "") + name -}}
    {{- ("" if name in (schema.required or []) else "?") + ": " + type_of(field) -}}
  {%- endfor -%}
{%- endmacro -%}
{%- macro notes_of(schema, path) -%}
  {%- for name, field in (schema.properties or {}).items() -%}
    {%- if field.description -%}
      {{- "\n- " + path + name + ": " + field.description -}}
      {%- if field.default is defined and field.default is not none -%}
        {{- " (default " + (field.default|tojson) + ")" -}}
      {%- endif -%}
    {%- endif -%}
    {%- if field["items"] is mapping -%}
      {{- notes_of(field["items"], path + name + "[].") -}}
    {%- else -%}
      {{- notes_of(field, path + name + ".") -}}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro -%}
{%- macro call_of(call) -%}
  {%- set function = call.function or call -%}
  {{- "```json\n{\"name\": " + (function.name|tojson) + ", \"arguments\": " -}}
  {{- function.arguments if function.arguments is string else (function.arguments|tojson) -}}
  {{- "}\n```" -}}
{%- endmacro -%}
{%- set first_is_system = messages and messages[0].role in ("system", "developer") -%}
{%- if first_is_system or tools -%}
  {{- "<|im_start|>system\n" -}}
  {%- if first_is_system -%}
    {{- messages[0].content or "" -}}
    {{- "\n\n" if tools else "" -}}
  {%- endif -%}
  {%- if tools -%}
    {{- "# Tools\nTo call a tool, answer with a JSON block:\n```json\n" -}}
    {{- "{\"name\": \"tool\", \"arguments\": {\"parameter\": \"value\"}}\n```" -}}
    {%- for tool in tools -%}
      {%- set function = tool.function or tool -%}
      {{- "\n\n" + function.name + "(" + fields_of(function.parameters or {}) + ")" -}}
      {{- "\n" + function.description if function.description else "" -}}
      {{- notes_of(function.parameters or {}, "") -}}
    {%- endfor -%}
  {%- endif -%}
  {{- "<|im_end|>\n" -}}
{%- endif -%}
{%- for message in messages -%}
  {%- if not (loop.first and first_is_system) -%}
    {{- "<|im_start|>" + message.role + "\n" + (message.content or "") -}}
    {%- if message.tool_calls -%}
      {%- for call in message.tool_calls -%}
        {%- if not loop.first or (message.content and message.content[-1:] != "\n") -%}
          {{- "\n" -}}
        {%- endif -%}
        {{- call_of(call) -}}
      {%- endfor -%}
    {%- endif -%}
    {{- "<|im_end|>\n" -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- "<|im_start|>assistant\n" -}}
{%- endif -%}
"""
)
