//! OpenAI Responses.
//!
//! Effects: test support.

use super::*;

const KEYS: &[&str] = &[
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const LEAST_OUTPUT_TOKENS: u64 = 16;

pub(super) fn check(body: &Map<String, Value>) -> CheckResult<ParsedRequest> {
    only_keys(body, KEYS, |key| format!("Unknown parameter: '{key}'."))?;
    filled_string(body.get("model").unwrap_or(&Value::Null), "model")?;
    number_within(body, "temperature", 0.0..=2.0)?;
    whole_from(body, "max_output_tokens", LEAST_OUTPUT_TOKENS)?;

    let mut walk = ResponsesChecker::default();
    if let Some(instructions) = body.get("instructions").filter(|given| !given.is_null()) {
        walk.seen.system = string(instructions, "instructions")?.into();
    }
    for (k, tool) in body
        .get("tools")
        .map_or(Ok(&Vec::new()), |tools| array(tools, "tools"))?
        .iter()
        .enumerate()
    {
        let place = format!("tools[{k}]");
        if string(&tool["type"], &format!("{place}.type"))? == "function" {
            let name = identifier(&tool["name"], &format!("{place}.name"), 64)?;
            schema(&tool["parameters"], &format!("{place}.parameters"))?;
            add_tool(&mut walk.seen, name)?;
        }
    }
    match body.get("input").unwrap_or(&Value::Null) {
        text @ Value::String(_) => walk
            .seen
            .turns
            .push(RequestTurn::User(filled_string(text, "input")?.into())),
        items => {
            for (k, item) in filled_array(items, "input")?.iter().enumerate() {
                walk.item(item, &format!("input[{k}]"))?;
            }
        }
    }
    walk.reasoning_led_somewhere()?;
    if let Some(id) = walk.pairing.waiting.first() {
        return Err(format!("No tool output found for function call {id}."));
    }
    starts_with_user(&walk.seen)?;
    Ok(walk.seen)
}

#[derive(Default)]
struct ResponsesChecker {
    seen: ParsedRequest,
    pairing: Pairing,
    /// A reasoning item that no other item has followed yet.
    reasoning: Option<String>,
}

impl ResponsesChecker {
    fn item(&mut self, item: &Value, place: &str) -> CheckResult {
        object(item, place)?;
        let kind = item
            .get("type")
            .map_or(Ok("message"), |kind| string(kind, &format!("{place}.type")))?;
        match kind {
            "message" => self.message(item, place),
            "reasoning" => {
                let id = string(&item["id"], &format!("{place}.id"))?;
                array(&item["summary"], &format!("{place}.summary"))?;
                self.reasoning = Some(id.to_owned());
                Ok(())
            }
            "function_call" => {
                self.reasoning = None;
                self.call(item, place)
            }
            "function_call_output" => {
                self.reasoning_led_somewhere()?;
                self.output(item, place)
            }
            other => Err(format!("Invalid value: '{other}'. ({place}.type)")),
        }
    }

    fn reasoning_led_somewhere(&self) -> CheckResult {
        match &self.reasoning {
            None => Ok(()),
            Some(id) => Err(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            )),
        }
    }

    fn message(&mut self, item: &Value, place: &str) -> CheckResult {
        let role = string(&item["role"], &format!("{place}.role"))?;
        let text = content(&item["content"], role, &format!("{place}.content"))?;
        match role {
            "assistant" => {
                self.reasoning = None;
                self.seen.turns.push(RequestTurn::Assistant {
                    text,
                    calls: Vec::new(),
                });
            }
            "user" => {
                self.reasoning_led_somewhere()?;
                self.seen.turns.push(RequestTurn::User(text));
            }
            "system" | "developer" => join_line(&mut self.seen.system, &text),
            other => {
                return Err(format!(
                    "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'. \
                     ({place}.role)"
                ));
            }
        }
        Ok(())
    }

    fn call(&mut self, item: &Value, place: &str) -> CheckResult {
        let id = filled_string(&item["call_id"], &format!("{place}.call_id"))?;
        let name = identifier(&item["name"], &format!("{place}.name"), 64)?;
        let args = json_text(&item["arguments"], &format!("{place}.arguments"))?;
        self.pairing.call(id)?;
        let call = RequestCall {
            id: id.into(),
            name: name.into(),
            args,
        };
        // Text and calls of one answer are separate items here; on other wires they are one turn.
        match self.seen.turns.last_mut() {
            Some(RequestTurn::Assistant { calls, .. }) => calls.push(call),
            Some(RequestTurn::User(_) | RequestTurn::Result { .. }) | None => {
                self.seen.turns.push(RequestTurn::Assistant {
                    text: String::new(),
                    calls: vec![call],
                });
            }
        }
        Ok(())
    }

    fn output(&mut self, item: &Value, place: &str) -> CheckResult {
        let id = filled_string(&item["call_id"], &format!("{place}.call_id"))?;
        if !self.pairing.result(id) {
            return Err(format!(
                "No tool call found for function call output with call_id {id}."
            ));
        }
        let text = match &item["output"] {
            Value::String(text) => text.clone(),
            parts => content(parts, "user", &format!("{place}.output"))?,
        };
        self.seen.turns.push(RequestTurn::Result {
            id: id.into(),
            text,
        });
        Ok(())
    }
}

fn content(value: &Value, role: &str, place: &str) -> CheckResult<String> {
    if value.is_string() {
        return Ok(filled_string(value, place)?.into());
    }
    let mut text = String::new();
    for (k, part) in filled_array(value, place)?.iter().enumerate() {
        let place = format!("{place}[{k}]");
        match (string(&part["type"], &format!("{place}.type"))?, role) {
            ("output_text", "assistant") | ("input_text", "user" | "system" | "developer") => {
                join_line(
                    &mut text,
                    filled_string(&part["text"], &format!("{place}.text"))?,
                );
            }
            ("refusal", "assistant") => join_line(
                &mut text,
                string(&part["refusal"], &format!("{place}.refusal"))?,
            ),
            ("input_image", "user") => {
                let given = part
                    .get("image_url")
                    .or(part.get("file_id"))
                    .unwrap_or(&Value::Null);
                filled_string(given, &format!("{place}.image_url"))?;
            }
            ("input_file" | "input_audio", "user") => {}
            (other, _) => {
                return Err(format!(
                    "Invalid value: '{other}'. ({place}.type, role '{role}')"
                ));
            }
        }
    }
    Ok(text)
}
