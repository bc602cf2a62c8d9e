//! A saved conversation: its messages, then the session of the model.
//!
//! ```text
//! 8 bytes   "EPCHAT01"
//! 8 bytes   length of the messages, little-endian
//!           the messages: a JSON list of objects with `role` and `content`
//!           the session, as `edgepack_llm::session::Session::save` writes it
//! ```

use std::io::{Read, Write};

use edgepack_llm::chat::Message;
use edgepack_llm::session;
use serde_json::{Value, json};

use crate::status::Failure;

const MAGIC: [u8; 8] = *b"EPCHAT01";

/// Messages of a conversation, role and content, oldest first.
pub type Messages = Vec<(String, String)>;

/// The most bytes of messages.
const MOST: u64 = 64 << 20;

/// Writes a conversation.
pub fn write_saved(messages: &Messages, session: &mut session::Session, out: &mut dyn Write) -> Result<(), Failure> {
    let list: Vec<Value> = messages.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
    let list = serde_json::to_vec(&list)?;
    out.write_all(&MAGIC)?;
    out.write_all(&(list.len() as u64).to_le_bytes())?;
    out.write_all(&list)?;
    Ok(session.save(out)?)
}

/// Reads a conversation back. If it fails the session is as it was.
pub fn read_saved(mut bytes: &[u8], session: &mut session::Session) -> Result<Messages, Failure> {
    let broken = |message: &str| Failure::findings(format!("not a saved conversation: {message}"));
    let mut head = [0; 16];
    bytes.read_exact(&mut head).map_err(|_| broken("it is too short"))?;
    let (magic, length) = head.split_at(8);
    if magic != MAGIC {
        return Err(broken("it begins with other bytes"));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    if length > MOST {
        return Err(broken(&format!("{length} bytes of messages, at most {MOST} are read")));
    }
    let (list, image) = usize::try_from(length)
        .ok()
        .and_then(|length| bytes.split_at_checked(length))
        .ok_or_else(|| broken("it ends within the messages"))?;
    let list: Vec<Value> = serde_json::from_slice(list).map_err(|error| broken(&error.to_string()))?;
    let text = |message: &Value, key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut messages = Messages::new();
    for message in &list {
        let (Some(role), Some(content)) = (text(message, "role"), text(message, "content")) else {
            return Err(broken("a message without a role and a content"));
        };
        Message::new(&role, &content)?;
        messages.push((role, content));
    }
    session.restore(image)?;
    Ok(messages)
}
