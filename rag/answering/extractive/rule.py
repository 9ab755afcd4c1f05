"""The numbers for choosing sentences, in a single value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class QuoteRule:
    """Factors of a sentence's score and limits of a reply, from known questions (docs/measurements/answering.md)."""

    maximum_quotes: int = 3
    maximum_characters: int = 900
    #: Lowest score for a further sentence, relative to the best.
    least_of_best: float = 0.6
    least_of_best_row: float = 0.85
    #: The same for a sentence from a different passage if the best sentence holds the whole question.
    least_beside_whole: float = 0.8
    #: The same for sentences right beside the best: they continue its thought in different words and need less.
    least_beside: float = 0.4
    #: Share of the question's words a further sentence must hold itself, relative to the best. Under a heading naming
    #: the subject, every sentence would otherwise count.
    least_own: float = 0.5
    #: A sentence answers a part of the question from this share of the part's words on.
    least_of_part: float = 0.4
    heading_weight: float = 0.5
    #: Weight of a single word from an expression: "second" from "second job".
    part_of_expression: float = 0.5
    #: Gain for the first sentences below a heading which holds the whole question.
    below_heading: tuple[float, float] = (0.5, 0.25)
    #: Factor for a sentence with all question words missing in its headings: "They never expire", below "Credit hours".
    whole_value: float = 1.15
    #: Factor for a row beside a section with the question in the heading.
    overview_value: float = 0.4
    #: A text at least this long which starts another text is a cut copy.
    least_cut: int = 40
    #: Factor for a sentence cut by the passage's edge, which reads badly.
    fragment_value: float = 0.5
    #: Factor for a sentence from a document the question does not mean, such as the second health plan.
    other_document_value: float = 0.5
    #: Questions about rules and plans mostly ask for an amount, a date or a time limit.
    figure_value: float = 1.25
    type_value: float = 1.6
    #: Factor for the right kind of fact below a matching heading, "Number of days".
    headed_value: float = 1.15
    #: Factor below a heading in the question which the terms alone do not show: "Other parent".
    named_heading_value: float = 1.3
    #: Factor for a sentence without the kind of fact the question asks for.
    other_type_value: float = 0.8
    #: Factor for a different language than the named country's, because the rule belongs to a different branch.
    other_branch_value: float = 0.6
    #: The passage nowhere names the question's subject, and a different passage does. From 0.3 to 0.6 the same
    #: quotations come first.
    other_subject_value: float = 0.6
    #: Gain for a sentence with all words from a follow-up; factor for a sentence with names foreign to the
    #: conversation; share of the best sentence's words required from further quotations.
    focus_value: float = 0.6
    other_name_value: float = 0.85
    least_of_follow_up: float = 0.7
    #: Factor for a document withdrawn according to its title.
    withdrawn_value: float = 0.5
    #: The question's figure is inside a row's range, or outside: "up to 2 years" for somebody with six.
    inside_value: float = 2.5
    outside_value: float = 0.5
    #: Factor for a sentence which only says where to find the answer.
    pointer_value: float = 0.4
    longest_pointer: int = 240
    heading_characters: int = 60
    #: Factor from a passage to the next in the list.
    next_passage: float = 0.92
    #: Sentences compared by meaning; each takes a model about ten milliseconds.
    most_compared: int = 16
    #: Further sentences compared for each part of a question.
    more_compared: int = 6
    #: A quotation from a further document may have this much less cosine by meaning than the first. Branches' rules on
    #: the same thing in three languages have up to 0.046 less, sentences on something else in their documents from
    #: 0.086.
    less_alike: float = 0.06
    #: Lowest score, relative to the anchor, without a model of meaning: for a sentence from the asker's place to come
    #: first, and for sentences from different places to be named.
    least_of_another_place: float = 0.7
    #: A foreign-language sentence must score this much higher than the place's next sentence.
    stands_out: float = 1.2
    #: Sentences from the asker's place to compare with the best.
    most_of_own_place: int = 8
    #: The largest gain by meaning; all words of the question together count 1.
    meaning_weight: float = 0.8
    #: The largest gain from the part of the passage around a sentence; the part's similarity is already known.
    part_weight: float = 0.8
    #: Below this share, the question's words do not tell which sentence answers.
    least_in_words: float = 0.12
    #: From this share on, words alone decide and meaning is not compared.
    all_in_words: float = 0.9
    #: From this share on, the sentence covers the whole question.
    all_said: float = 0.99
    #: From this share of `meaning_weight` on, a sentence is near the question even without the words.
    near_in_meaning: float = 0.8
    #: From this share on, words are enough. Below, further sentences from the best passage need only the second value.
    sure_in_words: float = 0.5
    least_of_unsure: float = 0.2
    #: Sentences quoted from the start of the best passage when no words decide.
    first_sentences: int = 3
    #: Neighbours of the best sentence: their offsets in the order tried, and the most characters in total.
    neighbours: tuple[int, int, int, int] = (-1, 1, 2, -2)
    longest_neighbourhood: int = 560
    #: Factor for a bare label, such as an entry in a table of contents, and its most words. `example_value` is the
    #: factor for a sentence with an example.
    label_value: float = 0.3
    label_words: int = 6
    example_value: float = 0.7
    #: Factor for a list item: with equal scores a sentence wins, because it can be understood alone.
    item_value: float = 0.97
    #: Factor for a sentence limiting the sentence before: the rule comes before its exception.
    after_rule_value: float = 0.85
    #: Factors for a rule about a different group and for a different period than the question's.
    other_group_value: float = 0.75
    other_period_value: float = 0.75
    #: In languages with compounds, words from this length on are also searched inside longer words. A compound split
    #: into parts must be found to this share.
    least_compounded: int = 5
    enough_of_compound: float = 0.7
    #: Terms allowed between the terms of an expression: "work from the home office" matches "work from home".
    within_expression: int = 1
    #: Characters used to detect a passage's language.
    language_characters: int = 400


RULE = QuoteRule()
