//! OpenAI Chat Completions.
//!
//! Effects: test support.

use super::*;

const KEYS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

pub(super) fn check(body: &Map<String, Value>) -> CheckResult<ParsedRequest> {
    only_keys(body, KEYS, |key| {
        format!("Unrecognized request argument supplied: {key}")
    })?;
    filled_string(body.get("model").unwrap_or(&Value::Null), "model")?;
    number_within(body, "temperature", 0.0..=2.0)?;
    number_within(body, "top_p", 0.0..=1.0)?;
    whole_from(body, "max_tokens", 1)?;
    whole_from(body, "max_completion_tokens", 1)?;
    if body.contains_key("stream_options") && body.get("stream") != Some(&Value::Bool(true)) {
        return Err(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.".into(),
        );
    }

    let mut seen = ParsedRequest::default();
    match body.get("tools") {
        Some(tools) => tools_of(tools, &mut seen)?,
        None if body.contains_key("tool_choice") => {
            return Err(
                "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.".into()
            );
        }
        None => {}
    }
    let mut pairing = Pairing::default();
    let messages = filled_array(body.get("messages").unwrap_or(&Value::Null), "messages")?;
    for (k, message) in messages.iter().enumerate() {
        let place = format!("messages[{k}]");
        object(message, &place)?;
        let role = string(&message["role"], &format!("{place}.role"))?;
        if role != "tool" && !pairing.waiting.is_empty() {
            return Err(unanswered(&pairing));
        }
        match role {
            "system" | "developer" => {
                join_line(&mut seen.system, &content(&message["content"], &place)?)
            }
            "user" => seen
                .turns
                .push(RequestTurn::User(content(&message["content"], &place)?)),
            "assistant" => seen.turns.push(assistant(message, &place, &mut pairing)?),
            "tool" => seen.turns.push(tool(message, &place, &mut pairing)?),
            other => {
                return Err(format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'tool', and \
                     'developer'. ({place}.role)"
                ));
            }
        }
    }
    if !pairing.waiting.is_empty() {
        return Err(unanswered(&pairing));
    }
    starts_with_user(&seen)?;
    Ok(seen)
}

fn unanswered(pairing: &Pairing) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        pairing.waiting.join(", ")
    )
}

fn tools_of(tools: &Value, seen: &mut ParsedRequest) -> CheckResult {
    for (k, tool) in filled_array(tools, "tools")?.iter().enumerate() {
        let place = format!("tools[{k}]");
        if tool["type"] != "function" {
            return Err(format!(
                "Invalid value for '{place}.type': expected 'function'"
            ));
        }
        let name = identifier(
            &tool["function"]["name"],
            &format!("{place}.function.name"),
            64,
        )?;
        if let Some(parameters) = tool["function"].get("parameters") {
            schema(parameters, &format!("{place}.function.parameters"))?;
        }
        add_tool(seen, name)?;
    }
    Ok(())
}

/// Returns the text of a content, which is text or parts and must not be empty.
fn content(value: &Value, place: &str) -> CheckResult<String> {
    let place = format!("{place}.content");
    match value {
        Value::String(_) => Ok(filled_string(value, &place)?.to_owned()),
        Value::Array(_) => parts(value, &place),
        _ => Err(format!(
            "Invalid type for '{place}': expected one of a string or array of objects"
        )),
    }
}

fn parts(value: &Value, place: &str) -> CheckResult<String> {
    let mut text = String::new();
    for (k, part) in filled_array(value, place)?.iter().enumerate() {
        let place = format!("{place}[{k}]");
        match string(&part["type"], &format!("{place}.type"))? {
            "text" => join_line(
                &mut text,
                filled_string(&part["text"], &format!("{place}.text"))?,
            ),
            "image_url" => {
                filled_string(&part["image_url"]["url"], &format!("{place}.image_url.url"))?;
            }
            "input_audio" => {
                filled_string(
                    &part["input_audio"]["data"],
                    &format!("{place}.input_audio.data"),
                )?;
            }
            "file" => {
                object(&part["file"], &format!("{place}.file"))?;
            }
            "refusal" => join_line(
                &mut text,
                filled_string(&part["refusal"], &format!("{place}.refusal"))?,
            ),
            other => return Err(format!("Invalid value: '{other}' ({place}.type)")),
        }
    }
    Ok(text)
}

fn assistant(message: &Value, place: &str, pairing: &mut Pairing) -> CheckResult<RequestTurn> {
    let mut calls = Vec::new();
    if let Some(list) = message.get("tool_calls") {
        for (k, call) in filled_array(list, &format!("{place}.tool_calls"))?
            .iter()
            .enumerate()
        {
            let place = format!("{place}.tool_calls[{k}]");
            if call["type"] != "function" {
                return Err(format!(
                    "Invalid value for '{place}.type': expected 'function'"
                ));
            }
            let id = filled_string(&call["id"], &format!("{place}.id"))?;
            let name = identifier(
                &call["function"]["name"],
                &format!("{place}.function.name"),
                64,
            )?;
            let args = json_text(
                &call["function"]["arguments"],
                &format!("{place}.function.arguments"),
            )?;
            pairing.call(id)?;
            calls.push(RequestCall {
                id: id.into(),
                name: name.into(),
                args,
            });
        }
    }
    let text = match &message["content"] {
        Value::Null if calls.is_empty() => {
            return Err(format!(
                "Invalid value for '{place}.content': expected a string, got null."
            ));
        }
        Value::Null => String::new(),
        given => content(given, place)?,
    };
    Ok(RequestTurn::Assistant { text, calls })
}

fn tool(message: &Value, place: &str, pairing: &mut Pairing) -> CheckResult<RequestTurn> {
    let id = filled_string(&message["tool_call_id"], &format!("{place}.tool_call_id"))?;
    if !pairing.result(id) {
        return Err(format!(
            "Invalid parameter: messages with role 'tool' must be a response to a preceding message with \
             'tool_calls'; no such call is open: '{id}' ({place})"
        ));
    }
    // The result of a tool may be an empty text, but not an empty list of parts.
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        other => content(other, place)?,
    };
    Ok(RequestTurn::Result {
        id: id.into(),
        text,
    })
}
