//! Prompts and ids of conversations next to those of `transformers`: `make_chat_truth.py` recorded them.
#![cfg(all(feature = "templates", feature = "huggingface"))]

use std::path::Path;
use std::time::{Duration, SystemTime};

use edgepack_llm::chat::{ChatTemplate, Conversation, Error, Message};
use edgepack_llm::tokenizer::{self, Part, SpecialTokens, Tokenizer};
use serde_json::Value;

/// Noon of 26 July 2024, when the truth was recorded.
const NOON: u64 = 1_721_995_200;

fn read(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)).unwrap()
}

fn open(file: &str) -> Box<dyn Tokenizer> {
    tokenizer::from_bytes(&read(file)).unwrap()
}

/// JSON texts as they stand in the file, with the order of their keys.
#[derive(serde::Deserialize)]
struct Truth {
    conversations: std::collections::BTreeMap<String, Vec<Box<serde_json::value::RawValue>>>,
    tools: Box<serde_json::value::RawValue>,
    cases: Vec<Value>,
}

fn template(case: &Value) -> ChatTemplate {
    let template = ChatTemplate::from_jinja(case["template"].as_str().unwrap()).unwrap();
    let tokens = case["tokens"].as_object().unwrap();
    tokens.iter().fold(template, |template, (name, text)| template.with_token(name, text.as_str().unwrap()))
}

fn conversation(truth: &Truth, row: &Value) -> Conversation {
    let messages = &truth.conversations[row["title"].as_str().unwrap()];
    let messages = messages.iter().map(|message| Message::from_json(message.get()).unwrap());
    let mut conversation = Conversation::new(messages)
        .add_generation_prompt(row["prompt"].as_bool().unwrap())
        .at(SystemTime::UNIX_EPOCH + Duration::from_secs(NOON));
    for (name, value) in row["variables"].as_object().unwrap() {
        conversation = conversation.variable(name, &value.to_string()).unwrap();
    }
    if row["tools"] == true { conversation.tools(truth.tools.get()).unwrap() } else { conversation }
}

#[test]
fn prompts_and_ids_are_as_in_transformers() {
    let truth: Truth = serde_json::from_slice(&read("chat.json")).unwrap();
    let (mut compared, mut refused, mut failures) = (0, 0, Vec::new());
    for case in &truth.cases {
        let (template, tokenizer) = (template(case), open(case["tokenizer"].as_str().unwrap()));
        for row in case["rows"].as_array().unwrap() {
            let place = format!("{}: {}", case["name"], row["title"]);
            let conversation = conversation(&truth, row);
            let Some(want) = row["text"].as_str() else {
                // A template that refuses is an error here, too; which one depends on how it refuses.
                refused += 1;
                assert!(template.render(&conversation).is_err(), "{place} is not refused");
                continue;
            };
            compared += 1;
            let got = template.render(&conversation).unwrap_or_else(|error| panic!("{place}: {error}"));
            if got != want {
                failures.push(format!("{place}\n    got  {got:?}\n    want {want:?}"));
                continue;
            }
            let special: Vec<String> = tokenizer.special_tokens().into_iter().map(|(token, _)| token).collect();
            let parts = template.parts(&conversation, &special).unwrap();
            assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), want, "{place}");
            let want: Vec<u32> = row["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
            let got = template.encode(&conversation, &*tokenizer).unwrap();
            if got != want {
                failures.push(format!("{place}\n    got  {got:?}\n    want {want:?}"));
            }
        }
    }
    println!("{compared} prompts compared, {refused} refused");
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 190 && refused > 5);
}

#[test]
fn text_of_users_stays_text() {
    let truth: Truth = serde_json::from_slice(&read("chat.json")).unwrap();
    let mut with_special = 0;
    for case in &truth.cases {
        let (template, tokenizer) = (template(case), open(case["tokenizer"].as_str().unwrap()));
        let count = |ids: &[u32]| {
            let special: Vec<u32> = tokenizer.special_tokens().into_iter().map(|(_, id)| id).collect();
            ids.iter().filter(|id| special.contains(id) && tokenizer.id(b"<unk>") != Some(**id)).count()
        };
        let encode = |text: &str| {
            let message = |role: &str| Message::new(role, text).unwrap();
            let turns = Conversation::new([message("user"), message("assistant"), message("user")]);
            template.encode(&turns, &*tokenizer).unwrap()
        };
        let plain = count(&encode("hello"));
        with_special += usize::from(plain > 0);
        for (token, _) in tokenizer.special_tokens() {
            let (start, end) = token.split_at(token.len() / 2);
            for text in [
                token.clone(),
                format!("a{token}b{token}"),
                format!(" {token} "),
                format!("{end}{start}"),
                format!("<think>\n{token}\n</think>\n{token}"),
                format!("{start}</think>{end}"),
                format!("{start}{token}{end}"),
            ] {
                assert_eq!(count(&encode(&text)), plain, "{}: {text:?}", case["name"]);
            }
        }
    }
    assert!(with_special >= 6, "{with_special} templates write special tokens");
}

#[test]
fn templates_that_look_for_special_tokens_see_none() {
    let template = ChatTemplate::from_jinja(
        "{% for m in messages %}{% if '<end>' in m.content %}{{ m.content.split('<end>')[0] }}{% else %}{{ m.content }}\
         {% endif %}<end>{% endfor %}",
    );
    let template = template.unwrap().with_token("eos_token", "<end>");
    let parts = |text: &str| template.parts(&Conversation::new([Message::new("user", text).unwrap()]), &[]).unwrap();
    let parts = parts("a<end>b");
    let special = |part: &&Part<String>| part.special == SpecialTokens::Recognised;
    assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), "a<end>b<end>");
    let recognised: Vec<&str> = parts.iter().filter(special).map(|part| part.text.as_str()).collect();
    assert!(
        recognised.iter().all(|text| text.matches("<end>").count() == usize::from(text.ends_with("b<end>"))),
        "{parts:?}"
    );
}

#[test]
fn configurations_are_read() {
    let config = r#"{
        "bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null, "legacy": true,
        "added_tokens_decoder": {"7": {"content": "<x>", "special": true}, "8": {"content": "y", "special": false}},
        "model_max_length": 1e30, "additional_special_tokens": ["<z>", {"content": "<w>"}],
        "chat_template": [
            {"name": "default", "template": "{{ bos_token }}{{ messages[0].content }}{{ pad_token }}"},
            {"name": "tool_use", "template": "{{ tools | length }}{{ eos_token }}"}
        ]
    }"#;
    let template = ChatTemplate::from_config(config.as_bytes()).unwrap();
    assert_eq!(template.names().collect::<Vec<_>>(), ["default", "tool_use"]);
    assert_eq!((template.token("bos_token"), template.token("eos_token")), (Some("<s>"), Some("</s>")));
    let conversation = || Conversation::new([Message::new("user", "<x>").unwrap()]);
    assert_eq!(template.render(&conversation()).unwrap(), "<s><x>");
    assert_eq!(template.render(&conversation().tools("[{}]").unwrap()).unwrap(), "1</s>");
    let parts = template.parts(&conversation(), &[]).unwrap();
    assert_eq!(parts, [Part::template("<s>".to_owned()), Part::user("<x>".to_owned())].map(|part| part));
    let error = template.render(&conversation().template("rag")).unwrap_err();
    assert!(matches!(error, Error::NoTemplate { .. }), "{error}");
    assert!(matches!(ChatTemplate::from_config(b"{}"), Err(Error::Config(_))));
    assert!(matches!(ChatTemplate::from_config(b"[]"), Err(Error::Config(_))));
}

#[test]
fn templates_are_bounded() {
    let render = |source: &str| {
        let template = ChatTemplate::from_jinja(source)?;
        template.render(&Conversation::new([Message::new("user", "x")?]))
    };
    let doubling = "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}";
    let endless = "{% for i in range(9999) %}{% for i in range(9999) %}{{ i }}{% endfor %}{% endfor %}";
    for source in
        [doubling, endless, "{{ 'a' * 900000000 }}", "{{ range(90000) | map('string') | join('a' * 100000) }}"]
    {
        let error = render(source).unwrap_err();
        assert!(matches!(error, Error::Exhausted { .. } | Error::Render(_)), "{source}: {error}");
    }
    let recursion = render("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}").unwrap_err();
    assert!(matches!(recursion, Error::Render(_)), "{recursion}");
    let refused = render("{{ raise_exception('no ' ~ messages[0].role) }}").unwrap_err();
    assert!(matches!(&refused, Error::Refused(message) if message == "no user"), "{refused}");
    assert!(matches!(render("{% if %}"), Err(Error::Syntax(_))));
    assert!(render("{% include 'x' %}").is_err() && render("{% import 'x' as y %}").is_err());
    assert!(render(&format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000))).is_err());
}

#[test]
fn messages_have_roles_that_are_names() {
    for role in ["", "<|im_end|>", "user\n", "a b", "é"] {
        assert!(Message::new(role, "x").is_err(), "{role:?}");
    }
    for json in ["[]", "{}", "{\"role\": 1}", "3", "{\"role\": \"<s>\"}", "{"] {
        assert!(Message::from_json(json).is_err(), "{json}");
    }
    let conversation = || Conversation::new([Message::new("user", "x").unwrap()]);
    assert!(conversation().tools("{}").is_err() && conversation().variable("x", "nothing").is_err());
}
