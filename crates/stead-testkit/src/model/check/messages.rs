//! Anthropic Messages.
//!
//! Effects: test support.

use super::*;

const KEYS: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const MOST_CACHE_MARKS: usize = 4;
const LEAST_THINKING_TOKENS: u64 = 1024;

pub(super) fn check(
    request: &FakeHttpRequest,
    body: &Map<String, Value>,
) -> CheckResult<ParsedRequest> {
    if request.header("anthropic-version").is_none() {
        return Err("anthropic-version: header is required".into());
    }
    only_keys(body, KEYS, |key| {
        format!("{key}: Extra inputs are not permitted")
    })?;
    filled_string(body.get("model").ok_or("model: Field required")?, "model")?;
    body.get("max_tokens").ok_or("max_tokens: Field required")?;
    whole_from(body, "max_tokens", 1)?;
    number_within(body, "temperature", 0.0..=1.0)?;
    thinking(body)?;

    let mut walk = MessagesChecker::default();
    if let Some(system) = body.get("system") {
        walk.system(system)?;
    }
    if let Some(tools) = body.get("tools") {
        walk.tools(tools)?;
    }
    let messages = body.get("messages").ok_or("messages: Field required")?;
    let messages = filled_array(messages, "messages")?;
    for (k, message) in messages.iter().enumerate() {
        walk.message(message, &format!("messages.{k}"))?;
    }
    walk.all_answered()?;
    if walk.cache_marks > MOST_CACHE_MARKS {
        return Err(format!(
            "A maximum of {MOST_CACHE_MARKS} blocks with cache_control may be provided. Found {}.",
            walk.cache_marks
        ));
    }
    if walk.seen.calls().next().is_some() && walk.seen.tools.is_empty() {
        return Err("Requests which have `tool_use` or `tool_result` blocks in `messages` must define tools.".into());
    }
    if let Some(RequestTurn::Assistant { text, .. }) = walk.seen.turns.last()
        && text.ends_with(char::is_whitespace)
    {
        return Err("messages: final assistant content cannot end with trailing whitespace".into());
    }
    starts_with_user(&walk.seen)?;
    Ok(walk.seen)
}

fn thinking(body: &Map<String, Value>) -> CheckResult {
    let Some(thinking) = body.get("thinking") else {
        return Ok(());
    };
    match string(&thinking["type"], "thinking.type")? {
        "disabled" | "adaptive" => Ok(()),
        "enabled" => {
            let budget = thinking["budget_tokens"]
                .as_u64()
                .ok_or("thinking.enabled.budget_tokens: Field required")?;
            if budget < LEAST_THINKING_TOKENS {
                return Err(format!(
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_THINKING_TOKENS}"
                ));
            }
            if body
                .get("max_tokens")
                .and_then(Value::as_u64)
                .is_some_and(|most| most <= budget)
            {
                return Err("`max_tokens` must be greater than `thinking.budget_tokens`".into());
            }
            if body
                .get("temperature")
                .and_then(Value::as_f64)
                .is_some_and(|t| t != 1.0)
            {
                return Err("`temperature` may only be set to 1 when thinking is enabled".into());
            }
            Ok(())
        }
        other => Err(format!(
            "thinking: Input tag '{other}' does not match any of the expected tags"
        )),
    }
}

#[derive(Default)]
struct MessagesChecker {
    seen: ParsedRequest,
    pairing: Pairing,
    cache_marks: usize,
}

impl MessagesChecker {
    fn system(&mut self, system: &Value) -> CheckResult {
        if system.is_string() {
            self.seen.system = filled_string(system, "system")?.into();
            return Ok(());
        }
        for (k, block) in array(system, "system")?.iter().enumerate() {
            let place = format!("system.{k}");
            if block["type"] != "text" {
                return Err(format!("{place}: Input tag should be 'text'"));
            }
            join_line(&mut self.seen.system, text_block(block, &place)?);
            self.cache_mark(block, &place)?;
        }
        Ok(())
    }

    fn tools(&mut self, tools: &Value) -> CheckResult {
        for (k, tool) in array(tools, "tools")?.iter().enumerate() {
            let place = format!("tools.{k}");
            let name = identifier(&tool["name"], &format!("{place}.name"), 128)?;
            schema(&tool["input_schema"], &format!("{place}.input_schema"))?;
            add_tool(&mut self.seen, name)?;
            self.cache_mark(tool, &place)?;
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, place: &str) -> CheckResult {
        object(message, place)?;
        let content = &message["content"];
        match string(&message["role"], &format!("{place}.role"))? {
            "user" => self.user(content, place),
            "assistant" => {
                self.all_answered()?;
                self.assistant(content, place)
            }
            other => Err(format!(
                "messages: Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\"."
            )),
        }
    }

    fn all_answered(&self) -> CheckResult {
        match self.pairing.waiting.as_slice() {
            [] => Ok(()),
            waiting => Err(format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block \
                 must have a corresponding `tool_result` block in the next message.",
                waiting.join(", ")
            )),
        }
    }

    fn user(&mut self, content: &Value, place: &str) -> CheckResult {
        if content.is_string() {
            self.all_answered()?;
            let text = filled_string(content, &format!("{place}.content"))?;
            self.seen.turns.push(RequestTurn::User(text.into()));
            return Ok(());
        }
        let mut text = String::new();
        let mut media = 0;
        for (k, block) in filled_array(content, &format!("{place}.content"))?
            .iter()
            .enumerate()
        {
            let place = format!("{place}.content.{k}");
            self.cache_mark(block, &place)?;
            match string(&block["type"], &format!("{place}.type"))? {
                "text" => join_line(&mut text, text_block(block, &place)?),
                "image" | "document" => {
                    source(block, &place)?;
                    media += 1;
                }
                "tool_result" if media > 0 || !text.is_empty() => {
                    return Err(format!(
                        "{place}: `tool_result` blocks must come before any other content of the message"
                    ));
                }
                "tool_result" => self.result(block, &place)?,
                other => {
                    return Err(format!(
                        "{place}: `{other}` blocks are not permitted in `user` messages"
                    ));
                }
            }
        }
        // Results must follow their calls immediately: a call that is open here stays open.
        self.all_answered()?;
        if media > 0 || !text.is_empty() {
            self.seen.turns.push(RequestTurn::User(text));
        }
        Ok(())
    }

    fn result(&mut self, block: &Value, place: &str) -> CheckResult {
        let id = identifier(&block["tool_use_id"], &format!("{place}.tool_use_id"), 256)?;
        if !self.pairing.result(id) {
            return Err(format!(
                "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
                 have a corresponding `tool_use` block in the previous message."
            ));
        }
        let text = match &block["content"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            list => self.result_parts(list, &format!("{place}.content"))?,
        };
        if block["is_error"] == Value::Bool(true) && text.is_empty() {
            return Err(format!(
                "{place}: content cannot be empty if `is_error` is true"
            ));
        }
        self.seen.turns.push(RequestTurn::Result {
            id: id.into(),
            text,
        });
        Ok(())
    }

    fn result_parts(&mut self, list: &Value, place: &str) -> CheckResult<String> {
        let mut text = String::new();
        for (k, part) in array(list, place)?.iter().enumerate() {
            let place = format!("{place}.{k}");
            self.cache_mark(part, &place)?;
            match string(&part["type"], &format!("{place}.type"))? {
                "text" => join_line(&mut text, text_block(part, &place)?),
                "image" | "document" => source(part, &place)?,
                other => {
                    return Err(format!(
                        "{place}: Input tag '{other}' found in a `tool_result`"
                    ));
                }
            }
        }
        Ok(text)
    }

    fn assistant(&mut self, content: &Value, place: &str) -> CheckResult {
        if content.is_string() {
            let text = filled_string(content, &format!("{place}.content"))?.into();
            self.seen.turns.push(RequestTurn::Assistant {
                text,
                calls: Vec::new(),
            });
            return Ok(());
        }
        let mut text = String::new();
        let mut calls = Vec::new();
        for (k, block) in filled_array(content, &format!("{place}.content"))?
            .iter()
            .enumerate()
        {
            let place = format!("{place}.content.{k}");
            match string(&block["type"], &format!("{place}.type"))? {
                kind @ ("thinking" | "redacted_thinking") => {
                    if block.get("cache_control").is_some() {
                        return Err(format!(
                            "{place}: cache_control cannot be set on `{kind}` blocks"
                        ));
                    }
                    if kind == "thinking" {
                        filled_string(&block["signature"], &format!("{place}.signature"))?;
                        string(&block["thinking"], &format!("{place}.thinking"))?;
                    } else {
                        filled_string(&block["data"], &format!("{place}.data"))?;
                    }
                }
                "text" => join_line(&mut text, text_block(block, &place)?),
                "tool_use" => {
                    let id = identifier(&block["id"], &format!("{place}.tool_use.id"), 256)?;
                    let name = identifier(&block["name"], &format!("{place}.tool_use.name"), 128)?;
                    object(&block["input"], &format!("{place}.tool_use.input"))?;
                    self.pairing.call(id)?;
                    calls.push(RequestCall {
                        id: id.into(),
                        name: name.into(),
                        args: block["input"].clone(),
                    });
                }
                other => {
                    return Err(format!(
                        "{place}: `{other}` blocks are not permitted in `assistant` messages"
                    ));
                }
            }
            self.cache_mark(block, &place)?;
        }
        self.seen.turns.push(RequestTurn::Assistant { text, calls });
        Ok(())
    }

    fn cache_mark(&mut self, block: &Value, place: &str) -> CheckResult {
        let Some(mark) = block.get("cache_control") else {
            return Ok(());
        };
        if mark["type"] != "ephemeral" {
            return Err(format!(
                "{place}.cache_control: Input tag should be 'ephemeral'"
            ));
        }
        self.cache_marks += 1;
        Ok(())
    }
}

fn text_block<'a>(block: &'a Value, place: &str) -> CheckResult<&'a str> {
    match string(&block["text"], &format!("{place}.text"))? {
        "" => Err(format!("{place}: text content blocks must be non-empty")),
        blank if blank.trim().is_empty() => Err(format!(
            "{place}: text content blocks must contain non-whitespace text"
        )),
        text => Ok(text),
    }
}

fn source(block: &Value, place: &str) -> CheckResult {
    let source = &block["source"];
    let wanted: &[&str] = match string(&source["type"], &format!("{place}.source.type"))? {
        "base64" | "text" => &["media_type", "data"],
        "url" => &["url"],
        "file" => &["file_id"],
        other => {
            return Err(format!(
                "{place}.source: Input tag '{other}' does not match any of the expected tags"
            ));
        }
    };
    wanted.iter().try_for_each(|key| {
        filled_string(&source[*key], &format!("{place}.source.{key}")).map(drop)
    })
}
