//! Merging: lines that people wrote are not changed, no fact is lost, and merging twice is the same
//! as once.

use super::*;
use crate::fact::FactSource;
use proptest::prelude::*;

const MUCH: u64 = 100_000;

fn fact(id: &str, text: &str) -> Fact {
    Fact {
        text: text.to_owned(),
        sources: vec![FactSource::new(id)],
    }
}

fn line(id: &str, text: &str) -> String {
    format!("{}\n", fact(id, text))
}

fn bullet(text: &str, from: &[&str]) -> Bullet {
    Bullet {
        text: text.to_owned(),
        from: from.iter().map(|&id| id.to_owned()).collect(),
    }
}

fn drops(id: &str, by: &str) -> DroppedFact {
    DroppedFact {
        id: id.to_owned(),
        by: by.to_owned(),
    }
}

#[test]
fn a_decision_is_followed_as_far_as_it_makes_sense() {
    let memory = format!(
        "# Mine\n{}by hand\n{}",
        line("a", "Lives in Paris"),
        line("b", "Likes tea")
    );
    let new = [fact("x", "Moved to Berlin"), fact("y", "Likes tea, too")];
    let decided = |bullets, dropped| MergeDecision { bullets, dropped };
    let both = format!(
        "{}{}",
        line("x", "Moved to Berlin"),
        line("y", "Likes tea, too")
    );
    #[rustfmt::skip]
    let table = [
        ("nothing decided: all is added", decided(vec![], vec![]), format!("{memory}{both}"), vec![]),
        ("two become one, in the place of the old",
            decided(vec![bullet("Lives in Berlin", &["a", "x"])], vec![drops("y", "b")]),
            "# Mine\n- Lives in Berlin <!-- stead: id=a ; id=x -->\nby hand\n- Likes tea <!-- stead: id=b -->\n".to_owned(),
            vec!["a"]),
        ("an old one is superseded by a new one", decided(vec![], vec![drops("a", "x")]),
            format!("# Mine\nby hand\n{}{both}", line("b", "Likes tea")), vec!["a"]),
        ("a bullet of old ones alone is no news", decided(vec![bullet("All", &["a", "b"])], vec![]),
            format!("{memory}{both}"), vec![]),
        ("who drops each other: both stay", decided(vec![], vec![drops("x", "y"), drops("y", "x")]),
            format!("{memory}{both}"), vec![]),
        ("by something that is not there", decided(vec![], vec![drops("x", "zzz"), drops("x", "x")]),
            format!("{memory}{both}"), vec![]),
        ("empty words and unknown ids", decided(vec![bullet(" ", &["x"]), bullet("q", &["zzz"])], vec![]),
            format!("{memory}{both}"), vec![]),
        ("words that break out", decided(vec![bullet("a -->\n# b", &["x", "y"])], vec![]),
            format!("{memory}- a -- > # b <!-- stead: id=x ; id=y -->\n"), vec![]),
    ];
    for (why, decision, want, archived) in table {
        let applied = apply_decision(&memory, &new, &decision, &HashSet::new(), MUCH);
        assert_eq!(applied.memory.text(), want, "{why}");
        assert_eq!(
            applied.archived.iter().map(Fact::id).collect::<Vec<_>>(),
            archived,
            "{why}"
        );
    }
}

#[test]
fn what_is_said_already_is_not_said_again_without_a_model() {
    let memory = "# Mine\r\n- likes TEA!\r\n";
    let new = [
        fact("x", "Likes tea."),
        fact("y", "likes coffee"),
        fact("z", "Likes coffee."),
    ];
    let applied = apply_decision(
        memory,
        &new,
        &MergeDecision::default(),
        &HashSet::new(),
        MUCH,
    );
    assert_eq!(
        applied.memory.text(),
        format!("{memory}- likes coffee <!-- stead: id=y -->\r\n")
    );
}

#[test]
fn over_budget_the_oldest_of_the_machine_leave_and_nothing_by_hand() {
    let old: String = (0..50)
        .map(|n| line(&format!("o{n}"), &format!("old fact number {n}")))
        .collect();
    let memory = format!("# Mine\n{old}by hand\n");
    let applied = apply_decision(
        &memory,
        &[fact("x", "new")],
        &MergeDecision::default(),
        &HashSet::new(),
        100,
    );
    let text = applied.memory.text();
    let total: u64 = applied
        .memory
        .lines()
        .iter()
        .map(|line| prompt_tokens(line))
        .sum();
    assert!(
        total <= 100
            && text.starts_with("# Mine\n")
            && text.contains("by hand\n")
            && text.contains("id=x ")
    );
    assert!(text.contains("id=o49 ") && !text.contains("id=o0 "));
    let left: HashSet<String> = applied
        .archived
        .iter()
        .map(|fact| fact.id().to_owned())
        .collect();
    assert_eq!(left.len() + applied.memory.ids().len(), 51);
}

proptest! {
    #[test]
    fn no_fact_is_lost_no_hand_is_touched_and_twice_is_once(
        shape in prop::collection::vec(prop_oneof![Just(None), (0usize..8).prop_map(Some)], 0..10),
        new in prop::collection::btree_set(8usize..16, 0..6),
        bullets in prop::collection::vec((prop::collection::vec(0usize..18, 0..4), "[a-z ]{0,12}"), 0..4),
        dropped in prop::collection::vec((0usize..18, 0usize..18), 0..6),
        max_tokens in prop_oneof![Just(MUCH), 10u64..200],
    ) {
        let id = |n: usize| format!("f{n}");
        let mut used = HashSet::new();
        let memory: String = shape.iter().enumerate().map(|(i, kind)| match kind {
            Some(n) if used.insert(*n) => line(&id(*n), &format!("fact number {n}")),
            Some(_) | None => format!("hand {i}\n"),
        }).collect();
        let facts: Vec<Fact> = new.iter().map(|n| fact(&id(*n), &format!("fact number {n}"))).collect();
        let decision = MergeDecision {
            bullets: bullets.iter().map(|(from, text)| Bullet {
                text: text.clone(), from: from.iter().map(|n| id(*n)).collect(),
            }).collect(),
            dropped: dropped.iter().map(|(a, b)| drops(&id(*a), &id(*b))).collect(),
        };
        let applied = apply_decision(&memory, &facts, &decision, &HashSet::new(), max_tokens);
        let by_hand = |text: &str| FactDocument::parse(text).lines().iter()
            .filter(|line| Fact::parse(line).is_none() && line.starts_with("hand")).cloned().collect::<Vec<_>>();
        prop_assert_eq!(by_hand(&applied.memory.text()), by_hand(&memory));
        let archived: HashSet<String> =
            applied.archived.iter().flat_map(|fact| fact.ids().map(str::to_owned).collect::<Vec<_>>()).collect();
        let there = applied.memory.ids();
        let before = FactDocument::parse(&memory).ids();
        for old in &before {
            prop_assert!(there.contains(old) || archived.contains(old), "{old} is lost");
        }
        for fact in &facts {
            let dropped = decision.dropped.iter().any(|dropped| dropped.id == fact.id());
            prop_assert!(there.contains(fact.id()) || archived.contains(fact.id()) || dropped, "{} is lost", fact.id());
        }
        let again = apply_decision(&applied.memory.text(), &facts, &decision, &archived, max_tokens);
        prop_assert_eq!(again.memory.text(), applied.memory.text());
    }
}
