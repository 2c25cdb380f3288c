//! A part of the prompt.

use serde::Serialize;

/// A part of the system prompt, with its owner and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What it is about.
    pub title: String,
    /// The feature that contributes it.
    pub owner: &'static str,
    /// Where it stands: see `crate::order`.
    pub order: u16,
    /// The files it came from.
    pub sources: Vec<String>,
    /// The text as the model sees it.
    #[serde(skip)]
    pub text: String,
    /// What it stands in.
    #[serde(skip)]
    pub within: SectionGroup,
    /// What was left out.
    pub cut: Vec<SectionCut>,
}

/// What a section stands in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SectionGroup {
    /// The prompt itself.
    #[default]
    Prompt,
    /// The tag of loaded files.
    Loaded,
}

/// What was left out of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SectionCut {
    /// Of which file or list.
    pub source: String,
    /// How much, in words.
    pub what: String,
}

impl Section {
    /// A section of its own.
    pub fn new(
        title: impl Into<String>,
        owner: &'static str,
        order: u16,
        text: impl Into<String>,
    ) -> Self {
        let title = title.into();
        let text = text.into();
        Self {
            title,
            owner,
            order,
            sources: Vec::new(),
            text,
            within: SectionGroup::Prompt,
            cut: Vec::new(),
        }
    }

    /// The same, from a file.
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// The same, among the loaded files.
    pub fn as_loaded_file(self) -> Self {
        Self {
            within: SectionGroup::Loaded,
            ..self
        }
    }

    /// The same, and what was left out of it.
    pub fn with_cuts(mut self, cut: impl IntoIterator<Item = SectionCut>) -> Self {
        self.cut.extend(cut);
        self
    }

    /// A cautious estimate of its tokens.
    pub fn tokens(&self) -> usize {
        self.text.len().div_ceil(3)
    }
}
