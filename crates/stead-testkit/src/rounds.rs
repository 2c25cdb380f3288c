//! How often tests with random or timed steps repeat them.
//!
//! Effects: test support.

/// The variable that multiplies the repetitions.
const VARIABLE: &str = "STEAD_TEST_ROUNDS";

/// Returns `default`, or a multiple of it if `STEAD_TEST_ROUNDS` asks for more repetitions.
///
/// # Panics
/// If the variable is not a number.
pub fn rounds(default: usize) -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is how the test script speaks to the tests"
    )]
    let Ok(text) = std::env::var(VARIABLE) else {
        return default;
    };
    match text.parse::<usize>() {
        Ok(factor) => default.saturating_mul(factor.max(1)),
        Err(_) => panic!("{VARIABLE} must be a number, not {text:?}"),
    }
}
