//! Every tool a list or a rule may name.

/// A tool that is known by name, whether this version has it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTool {
    /// Its canonical name.
    pub name: &'static str,
    /// Whether this version has it.
    pub availability: Availability,
}

/// Whether this version has a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It has.
    Available,
    /// A later one will.
    Planned,
}

const TABLE: &str = include_str!("../data/known.txt");

/// The tool that `name` means, canonical or not.
pub fn known_tool(name: &str) -> Option<KnownTool> {
    rows()
        .find(|(tool, aliases)| {
            tool.name == name || aliases.split_whitespace().any(|alias| alias == name)
        })
        .map(|row| row.0)
}

/// All names of a known tool, by any of them; none of one that is not known.
pub fn known_names(name: &str) -> Vec<&'static str> {
    let named = |(tool, aliases): &(KnownTool, &'static str)| {
        tool.name == name || aliases.split_whitespace().any(|alias| alias == name)
    };
    let all = |(tool, aliases): (KnownTool, &'static str)| {
        [tool.name].into_iter().chain(aliases.split_whitespace())
    };
    rows()
        .find(named)
        .map(|row| all(row).collect())
        .unwrap_or_default()
}

/// The tool whose rules hold for `tool` as well, both by canonical name: `overwrite_file` is
/// `write_file` with a mode, so whatever denies, asks about or watches the one does so with the
/// other.
pub fn rules_follow(tool: &str) -> Option<&'static str> {
    (tool == "overwrite_file").then_some("write_file")
}

/// The canonical names of all tools that are known.
pub fn known_tools() -> impl Iterator<Item = KnownTool> {
    rows().map(|(tool, _)| tool)
}

fn rows() -> impl Iterator<Item = (KnownTool, &'static str)> {
    TABLE.lines().filter_map(|line| {
        let (name, aliases) = line.split_once(':').filter(|_| !line.starts_with('#'))?;
        let tool = match name.strip_prefix('~') {
            Some(name) => KnownTool {
                name,
                availability: Availability::Planned,
            },
            None => KnownTool {
                name,
                availability: Availability::Available,
            },
        };
        Some((tool, aliases))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_ours_is_known_by_all_its_names() {
        let file = stead_vfs::VPath::parse("x").unwrap();
        let more = [
            crate::todo_tools(),
            crate::plan_tools(&file),
            crate::task_tools(&file, None),
        ];
        for tool in crate::file_tools()
            .into_iter()
            .chain(more.into_iter().flatten())
        {
            let spec = tool.spec();
            for name in [&spec.name].into_iter().chain(&spec.aliases) {
                let known =
                    known_tool(name).unwrap_or_else(|| panic!("{name} is not in known.txt"));
                assert_eq!(
                    (known.name, known.availability),
                    (spec.name.as_str(), Availability::Available)
                );
            }
        }
        assert_eq!(
            known_tool("Bash").map(|tool| (tool.name, tool.availability)),
            Some(("execute", Availability::Available))
        );
        assert_eq!(
            known_tool("WebFetch").map(|tool| (tool.name, tool.availability)),
            Some(("web_fetch", Availability::Planned))
        );
        assert_eq!(known_tool("nonsense"), None);
    }
}
