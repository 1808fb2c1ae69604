//! Bufferbloat grades: by how much a ping takes longer under load.
//!
//! The thresholds are those of DSLReports (dslreports.com/faq/17930), which Waveform has too.

/// A grade, and what it means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grade {
    /// The letter.
    pub letter: &'static str,
    /// The least increase of the round trip that gets it, in milliseconds.
    pub from_ms: f64,
    /// What people notice, as the end of a sentence.
    pub meaning: &'static str,
}

/// All grades, the best one first.
pub const GRADES: [Grade; 6] = [
    grade("A+", f64::NEG_INFINITY, "nobody notices that the line is in use."),
    grade("A", 5.0, "calls and games hardly notice that the line is in use."),
    grade("B", 30.0, "games become a little sluggish while the line is in use."),
    grade("C", 60.0, "calls and games suffer while the line is in use."),
    grade("D", 200.0, "calls stumble and pages wait while the line is in use."),
    grade("F", 400.0, "calls, games and pages are close to unusable while the line is in use."),
];

/// How the worst phase of a test is graded.
pub const WORST_PHASE: &str =
    "DSLReports/Waveform thresholds on the mean increase of the worst phase, Weir 1";

impl Grade {
    /// The grade of an increase of the round trip under load, in milliseconds.
    #[must_use]
    pub fn of(increase_ms: f64) -> Self {
        let reached = |grade: &&Self| grade.from_ms <= increase_ms;
        GRADES.iter().rev().find(reached).copied().unwrap_or(GRADES[0])
    }

    /// A sentence on an increase of the round trip under load, in milliseconds. `limited` says that the loads may have met a
    /// limit of the server, and never filled the line.
    #[must_use]
    pub fn sentence(increase_ms: f64, limited: bool) -> String {
        let meaning = Self::of(increase_ms).meaning;
        let when =
            if limited { "With as much as this server lets pass" } else { "With the line full" };
        format!("{when} a ping takes {:.0} ms longer: {meaning}", increase_ms.max(0.0))
    }
}

/// Whether loads that carried so much may have met the limit of a server, in Mbit/s, and not that of the line.
#[must_use]
pub fn is_limited(limit_mbps: Option<f64>, down_mbps: Option<f64>, up_mbps: Option<f64>) -> bool {
    let most = down_mbps.unwrap_or(0.0).max(up_mbps.unwrap_or(0.0));
    limit_mbps.is_some_and(|limit| NEAR * limit <= most)
}

/// Goodput is without headers, and a mean. The server's page has the same share (`crates/serve/page/src/grading.ts`).
const NEAR: f64 = 0.8;

const fn grade(letter: &'static str, from_ms: f64, meaning: &'static str) -> Grade {
    Grade { letter, from_ms, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_change_at_their_thresholds() {
        let letters = [
            (-1.0, "A+"),
            (4.9, "A+"),
            (5.0, "A"),
            (29.9, "A"),
            (30.0, "B"),
            (60.0, "C"),
            (200.0, "D"),
            (399.0, "D"),
            (400.0, "F"),
        ];
        for (increase_ms, letter) in letters {
            assert_eq!(Grade::of(increase_ms).letter, letter, "{increase_ms}");
        }
    }

    #[test]
    fn a_sentence_says_no_less_than_nothing() {
        assert_eq!(
            Grade::sentence(-0.7, false),
            "With the line full a ping takes 0 ms longer: nobody notices that the line is in use."
        );
        let said = Grade::sentence(85.4, false);
        assert!(said.starts_with("With the line full a ping takes 85 ms longer: calls"), "{said}");
        let said = Grade::sentence(85.4, true);
        assert!(
            said.starts_with("With as much as this server lets pass a ping takes 85"),
            "{said}"
        );
    }

    #[test]
    fn a_server_that_limits_may_be_what_was_met_from_four_fifths_of_its_limit_on() {
        assert!(is_limited(Some(10.0), Some(8.0), Some(1.0)));
        assert!(is_limited(Some(10.0), None, Some(8.0)));
        assert!(!is_limited(Some(10.0), Some(7.99), Some(1.0)));
        assert!(!is_limited(Some(10.0), None, None));
        assert!(!is_limited(None, Some(8.0), Some(8.0)));
    }
}
