//! Gemini `generateContent`.
//!
//! Effects: test support.

use super::*;

const KEYS: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "model",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

pub(super) fn check(target: &str, body: &Map<String, Value>) -> CheckResult<ParsedRequest> {
    only_keys(body, KEYS, |key| {
        format!("Invalid JSON payload received. Unknown name \"{key}\": Cannot find field.")
    })?;
    if target.contains(":streamGenerateContent") && !target.contains("alt=sse") {
        return Err("this server streams only with alt=sse".into());
    }
    let mut seen = ParsedRequest::default();
    if let Some(system) = body.get("systemInstruction") {
        for (k, part) in filled_array(&system["parts"], "systemInstruction.parts")?
            .iter()
            .enumerate()
        {
            join_line(
                &mut seen.system,
                filled_string(&part["text"], &format!("systemInstruction.parts[{k}].text"))?,
            );
        }
    }
    if let Some(tools) = body.get("tools") {
        tools_of(tools, &mut seen)?;
    }
    if let Some(config) = body.get("generationConfig") {
        let config = object(config, "generationConfig")?;
        number_within(config, "temperature", 0.0..=2.0)?;
        whole_from(config, "maxOutputTokens", 1)?;
    }
    let mut open: Vec<String> = Vec::new();
    for (k, content) in filled_array(body.get("contents").unwrap_or(&Value::Null), "contents")?
        .iter()
        .enumerate()
    {
        let place = format!("contents[{k}]");
        object(content, &place)?;
        let role = string(&content["role"], &format!("{place}.role"))?;
        match role {
            "user" | "function" => user(content, &place, &mut open, &mut seen)?,
            "model" if !open.is_empty() => return Err(uneven()),
            "model" => model(content, &place, &mut open, &mut seen)?,
            other => {
                return Err(format!(
                    "Please use a valid role: user, model. Got '{other}' ({place})"
                ));
            }
        }
    }
    if !open.is_empty() {
        return Err(uneven());
    }
    starts_with_user(&seen)?;
    Ok(seen)
}

fn uneven() -> String {
    "Please ensure that the number of function response parts is equal to the number of function call parts of the \
     function call turn."
        .into()
}

fn tools_of(tools: &Value, seen: &mut ParsedRequest) -> CheckResult {
    for (k, tool) in array(tools, "tools")?.iter().enumerate() {
        let Some(declarations) = tool.get("functionDeclarations") else {
            continue;
        };
        for (j, function) in
            filled_array(declarations, &format!("tools[{k}].functionDeclarations"))?
                .iter()
                .enumerate()
        {
            let place = format!("tools[{k}].functionDeclarations[{j}]");
            let name = identifier(&function["name"], &format!("{place}.name"), 64)?;
            match (
                function.get("parameters"),
                function.get("parametersJsonSchema"),
            ) {
                (Some(_), Some(_)) => {
                    return Err(format!(
                        "{place}: parameters and parametersJsonSchema are mutually exclusive"
                    ));
                }
                (Some(given), None) | (None, Some(given)) => {
                    object(given, &format!("{place}.parameters"))?;
                }
                (None, None) => {}
            }
            add_tool(seen, name)?;
        }
    }
    Ok(())
}

fn user(
    content: &Value,
    place: &str,
    open: &mut Vec<String>,
    seen: &mut ParsedRequest,
) -> CheckResult {
    let mut text = String::new();
    let mut said = false;
    for (k, part) in filled_array(&content["parts"], &format!("{place}.parts"))?
        .iter()
        .enumerate()
    {
        let place = format!("{place}.parts[{k}]");
        if let Some(response) = part.get("functionResponse") {
            let name = identifier(
                &response["name"],
                &format!("{place}.functionResponse.name"),
                64,
            )?;
            let answer = object(
                &response["response"],
                &format!("{place}.functionResponse.response"),
            )?;
            let found = open
                .iter()
                .position(|waiting| waiting == name)
                .ok_or_else(uneven)?;
            open.remove(found);
            let id = response["id"].as_str().unwrap_or(name).to_owned();
            seen.turns.push(RequestTurn::Result {
                id,
                text: response_text(answer),
            });
        } else if part.get("inlineData").or(part.get("fileData")).is_some() {
            said = true;
        } else {
            join_line(
                &mut text,
                filled_string(&part["text"], &format!("{place}.text"))?,
            );
            said = true;
        }
    }
    // The turn right after the calls must contain all results.
    if !open.is_empty() {
        return Err(uneven());
    }
    if said {
        seen.turns.push(RequestTurn::User(text));
    }
    Ok(())
}

/// Returns the only text field of a response, or its JSON.
fn response_text(answer: &Map<String, Value>) -> String {
    match answer.values().next() {
        Some(Value::String(text)) if answer.len() == 1 => text.clone(),
        _ => Value::Object(answer.clone()).to_string(),
    }
}

fn model(
    content: &Value,
    place: &str,
    open: &mut Vec<String>,
    seen: &mut ParsedRequest,
) -> CheckResult {
    let mut text = String::new();
    let mut calls = Vec::new();
    for (k, part) in filled_array(&content["parts"], &format!("{place}.parts"))?
        .iter()
        .enumerate()
    {
        let place = format!("{place}.parts[{k}]");
        if let Some(call) = part.get("functionCall") {
            let name = identifier(&call["name"], &format!("{place}.functionCall.name"), 64)?;
            let args = call
                .get("args")
                .cloned()
                .unwrap_or_else(|| Value::Object(Map::new()));
            object(&args, &format!("{place}.functionCall.args"))?;
            open.push(name.to_owned());
            calls.push(RequestCall {
                id: call["id"].as_str().unwrap_or(name).into(),
                name: name.into(),
                args,
            });
        } else if part["thought"] == Value::Bool(true) {
            string(&part["text"], &format!("{place}.text"))?;
        } else if part.get("thoughtSignature").is_some() {
            // A signature may travel on a part without text.
            join_line(&mut text, part["text"].as_str().unwrap_or_default());
        } else {
            join_line(
                &mut text,
                filled_string(&part["text"], &format!("{place}.text"))?,
            );
        }
    }
    let after_the_model = matches!(
        seen.turns.last(),
        Some(RequestTurn::Assistant { .. }) | None
    );
    if !calls.is_empty() && after_the_model {
        return Err("Please ensure that function call turn comes immediately after a user turn or after a function \
                    response turn."
            .into());
    }
    seen.turns.push(RequestTurn::Assistant { text, calls });
    Ok(())
}
