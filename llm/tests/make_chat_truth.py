"""Records what transformers makes of conversations: `data/chat.json`. Run `make_truth.py` before.

    python make_chat_truth.py

The templates are written for this test; each does what the templates of one family of models do.
"""

import datetime
import json
from pathlib import Path

from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

DATA = Path(__file__).parent / "data"

# Trims contents, has a date, tools as indented JSON, and writes the beginning of the text itself.
LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "01 Jan 2020" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {{- "Functions:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if message.tool_calls is defined and message.tool_calls %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

# Takes thoughts out of what assistants said, counts messages from the end, and knows tools.
QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if call.function %}{%- set call = call.function %}{%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' ~ call.name ~ '", "arguments": ' }}
            {%- if call.arguments is string %}{{- call.arguments }}{%- else %}{{- call.arguments | tojson }}{%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' ~ content ~ '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

# Wants roles to alternate, and takes contents in parts.
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("roles must alternate user/assistant/user/...") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<|im_start|>' + role + '\\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'text' -%}{{ item['text'] | trim }}{%- else -%}{{ '<image>' }}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>model\\n' }}{%- endif -%}
"""

# Brackets around what users say; spaces matter; macros, filters and loop controls.
MISTRAL = """{%- macro wrap(text) -%}[INST] {{ text }} [/INST]{%- endmacro -%}
{%- set users = messages | selectattr("role", "equalto", "user") | list -%}
{{- bos_token }}
{%- for message in messages %}
    {%- if message["role"] == "system" %}{% continue %}{% endif %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and messages[0].role == "system" %}
            {{- wrap(messages[0].content + "\\n\\n" + message["content"]) }}
        {%- else %}
            {{- wrap(message["content"]) }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {% generation %}
        {{- " " + message["content"]|trim + eos_token }}
        {% endgeneration %}
    {%- endif %}
{%- endfor %}
{%- if users | length == 0 %}{{ "no users: " ~ [none, true, false, 1, 2.5] | join(",") ~ none ~ 1.0 }}{{ true }}{% endif %}
"""

# No white space control at all, as short templates have it.
SMOL = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are helpful<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

# Blocks on lines of their own.
PHI = """{% for message in messages %}
    {% if message['role'] == 'system' and message['content'] %}
{{ '<|system|>\\n' + message['content'] + '<|end|>\\n' }}
    {% elif message['role'] in ['user', 'assistant'] %}
{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather in a \"city\" <b>", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "enum": ["Zürich", "東京"]}, "days": {"type": "integer", "default": 1.5}},
    "required": ["city"]}}}]

USER, ASSISTANT = "user", "assistant"


def say(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CONVERSATIONS = {
    "one": say((USER, "Hello, world!")),
    "system": say(("system", "Be brief."), (USER, "Why is the sky blue?")),
    "turns": say((USER, "hi"), (ASSISTANT, "Hello! How are you?"), (USER, "I'm fine, they'RE too.")),
    "spaces": say(("system", "  padded  \n"), (USER, "  \n two  spaces\n\n"), (ASSISTANT, "\n\nyes \t"), (USER, "\n")),
    "empty": say((USER, ""), (ASSISTANT, ""), (USER, " ")),
    "languages": say((USER, "漢字 и кириллица 👩‍👩‍👧‍👦 e\u0301"), (ASSISTANT, "ภาษาไทย العربية"), (USER, "\ue000\U000f0000\U0010fffd private")),
    "code": say((USER, "```python\ndef f(a):\n\treturn {a: [1, 2]}\n```"), (ASSISTANT, "x < y && y > z || a[0] == '<b>'"), (USER, "{{ messages }} {% if %}")),
    "thoughts": say((USER, "2+2?"), (ASSISTANT, "<think>\nit is <b>four</b>\n</think>\n\n4"), (USER, "sure?"), (ASSISTANT, "<think>yes</think>Yes.")),
    "response": say((USER, "<tool_response>x</tool_response>"), (ASSISTANT, "ok"), (USER, "<tool_response>1 < 2</tool_response>")),
    "digits": say((USER, "1234567 89 3.14"), (ASSISTANT, "42"), (USER, "0")),
    "tool": say((USER, "Weather?")) + [{"role": ASSISTANT, "content": "", "tool_calls": [{"type": "function", "function": {
        "name": "weather", "arguments": {"city": "Zürich \"x\" <&>", "days": 2, "deep": {"a": [None, True, 1.0, 1e-7]}}}}]},
        {"role": "tool", "content": "rain\n12°"}] + say((ASSISTANT, "It rains."), (USER, "thanks")),
    "parts": [{"role": USER, "content": [{"type": "text", "text": " see "}, {"type": "image"}, {"type": "text", "text": "this"}]}],
    "assistant-first": say((ASSISTANT, "I begin.")),
}

CASES = [
    ("llama3", LLAMA3, "llama3-bytes", dict(bos_token="<|begin_of_text|>", eos_token="<|eot_id|>")),
    ("qwen", QWEN, "qwen-bytes", dict(eos_token="<|im_end|>")),
    ("gemma", GEMMA, "qwen-bytes", dict(bos_token="<|endoftext|>", eos_token="<|im_end|>")),
    ("mistral", MISTRAL, "llama2-metaspace", dict(bos_token="<s>", eos_token="</s>")),
    ("mistral-first", MISTRAL, "metaspace-first", dict(bos_token="<s>", eos_token="</s>")),
    ("smol", SMOL, "qwen-bytes", dict(bos_token="<|im_start|>", eos_token="<|im_end|>")),
    ("phi", PHI, "gpt2-bytes", dict(eos_token="<|endoftext|>")),
]


class Noon(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 12, 0, 0)


def main():
    chat_template_utils.datetime = Noon
    cases = []
    for name, template, tokenizer, tokens in CASES:
        fast = PreTrainedTokenizerFast(tokenizer_file=str(DATA / f"{tokenizer}.tokenizer.json"), chat_template=template, **tokens)
        entry = {"name": name, "template": template, "tokenizer": f"{tokenizer}.tokenizer.json", "tokens": tokens, "rows": []}
        for title, messages in CONVERSATIONS.items():
            for tools in [None, TOOLS] if name in ("llama3", "qwen") else [None]:
                for prompt in [True, False]:
                    variables = {"enable_thinking": False} if name == "qwen" and title == "one" else {}
                    options = dict(tools=tools, add_generation_prompt=prompt, **variables)
                    try:
                        text = fast.apply_chat_template(messages, tokenize=False, **options)
                        ids = fast.apply_chat_template(messages, tokenize=True, return_dict=False, **options)
                    except Exception as error:  # The template refuses it, or cannot do it.
                        text, ids = None, type(error).__name__
                    if tools and not prompt:
                        continue
                    entry["rows"].append({"title": title, "tools": tools is not None, "prompt": prompt, "variables": variables,
                                          "text": text, "ids": ids})
        cases.append(entry)
        made = [row for row in entry["rows"] if row["text"] is not None]
        print(f"{name:16} {len(made)} of {len(entry['rows'])} conversations")
    (DATA / "chat.json").write_text(json.dumps({"conversations": CONVERSATIONS, "tools": TOOLS, "cases": cases}, ensure_ascii=False, separators=(",", ":")), "utf-8")


if __name__ == "__main__":
    main()
