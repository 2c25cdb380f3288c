use super::*;
use crate::Reply;
use std::collections::VecDeque;
use std::sync::Mutex;
use stead_core::{Block, Price, StopReason, Usage};

/// A model with prepared answers, one list of items per attempt.
#[derive(Debug)]
struct Given {
    facts: ModelFacts,
    attempts: Mutex<VecDeque<Vec<Result<Delta, ModelError>>>>,
}

impl Model for Given {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, _: &'a Request) -> DeltaStream<'a> {
        let items = self
            .attempts
            .lock()
            .unwrap()
            .pop_front()
            .expect("one attempt too many");
        Box::pin(stream::iter(items))
    }
}

fn given(name: &'static str, attempts: Vec<Vec<Result<Delta, ModelError>>>) -> Arc<dyn Model> {
    let price = Price {
        input: name.len() as f64,
        output: 0.0,
        cache_read: None,
        cache_write: None,
    };
    Arc::new(Given {
        facts: ModelFacts::unknown(name.into()).with_price(Some(price)),
        attempts: Mutex::new(attempts.into()),
    })
}

fn retrying(inner: Arc<dyn Model>, max_retries: u32) -> RetryingModel {
    RetryingModel {
        inner,
        max_retries,
        patience: RateLimitPatience::AsOtherFailures,
        jitter: || 1.0,
    }
}

fn text(text: &str) -> Delta {
    Delta::Text(text.into())
}

fn done(model: &str) -> Delta {
    let content = vec![Block::text("hello")];
    Delta::Done(Box::new(Reply {
        content,
        usage: Usage::default(),
        stop: StopReason::EndTurn,
        model: model.into(),
    }))
}

fn again(attempt: u32, wait_ms: u64, reason: &str) -> Delta {
    Delta::Retry {
        attempt,
        wait_ms,
        reason: reason.into(),
    }
}

fn limited(seconds: u64) -> ModelError {
    ModelError::RateLimited {
        retry_after: Some(Duration::from_secs(seconds)),
        message: "slow".into(),
    }
}

const CUT: &str = "the answer was cut off before its end";

async fn collect(model: &dyn Model) -> (Vec<Result<Delta, ModelError>>, u64) {
    let start = tokio::time::Instant::now();
    let items = model.stream(&Request::default()).collect().await;
    (items, start.elapsed().as_millis() as u64)
}

#[tokio::test(start_paused = true)]
async fn a_stream_cut_midway_is_asked_again_after_a_pause() {
    let inner = given(
        "m",
        vec![
            vec![Ok(text("he")), Err(ModelError::Cut)],
            vec![Err(ModelError::Cut)],
            vec![Ok(text("hello")), Ok(done("m"))],
        ],
    );
    let want = vec![
        Ok(text("he")),
        Ok(again(2, 500, CUT)),
        Ok(again(3, 1000, CUT)),
        Ok(text("hello")),
        Ok(done("m")),
    ];
    assert_eq!(collect(&retrying(inner, 4)).await, (want, 1500));
}

#[tokio::test(start_paused = true)]
async fn retries_end_with_the_last_error() {
    let inner = given("m", vec![vec![Err(ModelError::Cut)], vec![Err(limited(1))]]);
    let want = vec![Ok(again(2, 500, CUT)), Err(limited(1))];
    assert_eq!(collect(&retrying(inner, 1)).await, (want, 500));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_for_as_long_as_the_caller_waits() {
    let answers = || {
        let mut answers = vec![vec![Err(limited(0))]; 9];
        answers.push(vec![Ok(done("m"))]);
        answers
    };
    let patient = |max_retries| RetryingModel {
        patience: RateLimitPatience::UntilStopped,
        ..retrying(given("m", answers()), max_retries)
    };
    let (items, waited_ms) = collect(&patient(4)).await;
    assert_eq!(items.len(), 10);
    assert_eq!(items.last(), Some(&Ok(done("m"))));
    // 0.5, 1, 2, 4, 8, 16 and three times 30 seconds.
    assert_eq!(waited_ms, 121_500);
    assert_eq!(collect(&patient(0)).await.0, [Err(limited(0))]);
    // Other failures are not waited for.
    let cut = RetryingModel {
        patience: RateLimitPatience::UntilStopped,
        ..retrying(given("m", vec![vec![Err(ModelError::Cut)]; 9]), 2)
    };
    assert_eq!(collect(&cut).await.0.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_not_asked_again() {
    let inner = given("m", vec![vec![Err(ModelError::BadRequest("no".into()))]]);
    assert_eq!(
        collect(&retrying(inner, 4)).await,
        (vec![Err(ModelError::BadRequest("no".into()))], 0)
    );
}

#[test]
fn pauses_double_up_to_a_cap_and_honour_what_the_provider_asks() {
    let model = retrying(given("m", vec![]), 9);
    let lazy = RetryingModel {
        jitter: || 0.0,
        ..retrying(given("m", vec![]), 9)
    };
    let cases = [
        (model.pause(1, &ModelError::Cut), 500),
        (model.pause(3, &ModelError::Cut), 2000),
        (model.pause(60, &ModelError::Cut), 30_000),
        (lazy.pause(3, &ModelError::Cut), 1000),
        (model.pause(1, &limited(7)), 7000),
        (model.pause(9, &limited(7)), 30_000),
        (model.pause(1, &limited(9999)), 120_000),
    ];
    for (pause, want_ms) in cases {
        assert_eq!(pause, Duration::from_millis(want_ms));
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_model_answers_when_one_stays_unavailable_and_attempts_count_on() {
    let first = retrying(
        given(
            "first",
            vec![
                vec![Err(ModelError::Cut)],
                vec![Ok(text("he")), Err(ModelError::Cut)],
            ],
        ),
        1,
    );
    let second = given("second", vec![vec![Err(ModelError::Auth("no key".into()))]]);
    let third = retrying(
        given(
            "third",
            vec![vec![Err(limited(2))], vec![Ok(done("third"))]],
        ),
        1,
    );
    let model = FallbackModel::new(Arc::new(first), vec![second, Arc::new(third)]);
    let want = vec![
        Ok(again(2, 500, CUT)),
        Ok(text("he")),
        Ok(again(
            3,
            0,
            &format!("first: {CUT}; second is asked instead"),
        )),
        Ok(again(
            4,
            0,
            "second: the provider refused the key: no key; third is asked instead",
        )),
        Ok(again(5, 2000, "rate limited by the provider: slow")),
        Ok(done("third")),
    ];
    assert_eq!(collect(&model).await, (want, 2500));
    let price = |name| model.facts().price_for(name).map(|price| price.input);
    assert_eq!(
        (price("first"), price("second"), price("other")),
        (Some(5.0), Some(6.0), None)
    );
}

#[tokio::test(start_paused = true)]
async fn no_other_model_is_asked_what_every_model_would_refuse() {
    for error in [
        ModelError::ContextOverflow("long".into()),
        ModelError::BadRequest("odd".into()),
    ] {
        let first = given("first", vec![vec![Err(error.clone())]]);
        let model = FallbackModel::new(first, vec![given("second", vec![])]);
        assert_eq!(collect(&model).await, (vec![Err(error)], 0));
    }
}

#[tokio::test]
async fn whoever_answers_instead_is_asked_what_is_meant_for_it() {
    /// Fails, or answers with the requested temperature.
    #[derive(Debug)]
    struct Echo(ModelFacts, Option<ModelError>);

    impl Model for Echo {
        fn facts(&self) -> &ModelFacts {
            &self.0
        }

        fn stream<'a>(&'a self, request: &'a Request) -> DeltaStream<'a> {
            let asked = Ok(text(&format!("{:?}", request.params.temperature)));
            Box::pin(stream::iter([self.1.clone().map_or(asked, Err)]))
        }
    }

    let request = |temperature, fallback_requests| Request {
        params: crate::Params {
            temperature,
            ..Default::default()
        },
        fallback_requests,
        ..Request::default()
    };
    let asked = request(
        Some(0.5),
        vec![("c".to_owned(), request(Some(1.0), Vec::new()))],
    );
    for (second, want) in [("b", "Some(0.5)"), ("c", "Some(1.0)")] {
        let echo = |name: &'static str, error| {
            Arc::new(Echo(ModelFacts::unknown(name.into()), error)) as Arc<dyn Model>
        };
        let first = echo("a", Some(ModelError::Cut));
        let model = FallbackModel::new(first, vec![echo(second, None)]);
        let items: Vec<_> = model.stream(&asked).collect().await;
        assert_eq!(items.last(), Some(&Ok(text(want))), "{second}");
    }
}
