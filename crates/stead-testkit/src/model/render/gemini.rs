//! Answers on the wire of Gemini.
//!
//! Effects: test support.

use super::*;

impl CompleteReply<'_> {
    pub(super) fn gemini_parts(&self) -> Vec<Value> {
        // The provider attaches its signature to the first call after thinking.
        let mut signature = self.thoughts().map(|_| SIGNATURE);
        let part = |(piece, _): &(&FakeReplyPiece, String)| match piece {
            FakeReplyPiece::Text(text) => json!({"text": text}),
            FakeReplyPiece::Thinking(text) => json!({"text": text, "thought": true}),
            FakeReplyPiece::Call { name, args, .. } => {
                let mut part = json!({"functionCall": {"name": name, "args": object(args)}});
                if let Some(signature) = signature.take() {
                    part["thoughtSignature"] = json!(signature);
                }
                part
            }
        };
        self.pieces.iter().map(part).collect()
    }

    pub(super) fn gemini_stop(&self) -> &str {
        match &self.stop {
            StopReason::EndTurn
            | StopReason::CutOff
            | StopReason::ToolUse
            | StopReason::StopSequence => "STOP",
            StopReason::MaxTokens => "MAX_TOKENS",
            StopReason::Refusal | StopReason::ContentFilter => "SAFETY",
            StopReason::Other(reason) => reason,
        }
    }

    pub(super) fn gemini(&self, parts: Vec<Value>, finish: Option<&str>) -> Value {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        let Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            reasoning_tokens,
            ..
        } = self.usage;
        json!({
            "candidates": [candidate],
            "modelVersion": MODEL,
            "responseId": self.id,
            "usageMetadata": {
                "promptTokenCount": input_tokens,
                "cachedContentTokenCount": cache_read_tokens,
                "candidatesTokenCount": output_tokens.saturating_sub(reasoning_tokens),
                "thoughtsTokenCount": reasoning_tokens,
                "totalTokenCount": input_tokens + output_tokens,
            },
        })
    }

    pub(super) fn gemini_events(&self) -> String {
        let mut out = String::new();
        let mut send =
            |part: Value, finish| event(&mut out, None, &self.gemini(vec![part], finish));
        for part in self.gemini_parts() {
            match part["text"].as_str() {
                Some(text) => {
                    words(text).for_each(|word| send(with(&part, "text", json!(word)), None))
                }
                None => send(part, None),
            }
        }
        send(json!({"text": ""}), Some(self.gemini_stop()));
        out
    }
}
