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

    /// A sentence on an increase of the round trip under load, in milliseconds. `limit_mbps` is what a server lets pass, if the
    /// loads may have met that and never filled the line.
    #[must_use]
    pub fn sentence(increase_ms: f64, limit_mbps: Option<f64>) -> String {
        let Self { letter, meaning, .. } = Self::of(increase_ms);
        let longer = format!("a ping takes {:.0} ms longer: {meaning}", increase_ms.max(0.0));
        let Some(limit) = limit_mbps else { return format!("With the line full {longer}") };
        // Grades by which there is nothing to do.
        let untold = if matches!(letter, "A+" | "A") { UNTOLD } else { "" };
        format!("With as much as the server lets pass ({limit} Mbit/s) {longer}{untold}")
    }
}

/// The limit of a server, in Mbit/s, if loads that carried so much may have met that and not the line's: they came near it, or
/// `shared` it with another test.
#[must_use]
pub fn met_limit(
    limit_mbps: Option<f64>,
    shared: bool,
    down_mbps: Option<f64>,
    up_mbps: Option<f64>,
) -> Option<f64> {
    let most = down_mbps.unwrap_or(0.0).max(up_mbps.unwrap_or(0.0));
    limit_mbps.filter(|limit| shared || NEAR * limit <= most)
}

/// Goodput is without headers, and a mean. The server's page has the same share (`crates/serve/page/src/grading.ts`).
const NEAR: f64 = 0.8;
const UNTOLD: &str = " What a full line does this test cannot tell.";

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
            Grade::sentence(-0.7, None),
            "With the line full a ping takes 0 ms longer: nobody notices that the line is in use."
        );
        let said = Grade::sentence(85.4, None);
        assert!(said.starts_with("With the line full a ping takes 85 ms longer: calls"), "{said}");
    }

    #[test]
    fn a_server_that_limits_is_told_and_its_line_not_praised() {
        let said = Grade::sentence(85.4, Some(12.5));
        let begin =
            "With as much as the server lets pass (12.5 Mbit/s) a ping takes 85 ms longer: calls";
        assert!(
            said.starts_with(begin) && said.ends_with("suffer while the line is in use."),
            "{said}"
        );
        for increase_ms in [0.0, 29.9] {
            let praise = Grade::sentence(increase_ms, Some(50.0));
            assert!(
                praise.ends_with("is in use. What a full line does this test cannot tell."),
                "{praise}"
            );
        }
        assert!(!Grade::sentence(30.0, Some(50.0)).contains("cannot tell"));
    }

    #[test]
    fn a_server_that_limits_may_be_what_was_met_from_four_fifths_of_its_limit_on() {
        let limit = Some(10.0);
        assert_eq!(met_limit(limit, false, Some(8.0), Some(1.0)), limit);
        assert_eq!(met_limit(limit, false, None, Some(8.0)), limit);
        assert_eq!(met_limit(limit, false, Some(7.99), Some(1.0)), None);
        assert_eq!(met_limit(limit, false, None, None), None);
        assert_eq!(met_limit(limit, true, Some(3.0), None), limit, "another had its part");
        assert_eq!(met_limit(None, true, Some(8.0), Some(8.0)), None);
    }
}
