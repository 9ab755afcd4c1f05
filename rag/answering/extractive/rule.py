"""Define the weights and limits for scoring and choosing sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class QuoteRule:
    """The weights and limits for quotations, tuned on known questions (docs/measurements/answering.md)."""

    maximum_quotes: int = 3
    maximum_characters: int = 900
    #: Lowest score for a further sentence, relative to the best; then the same for a further row.
    least_of_best: float = 0.6
    least_of_best_row: float = 0.85
    #: Lowest relative score for a sentence from a different passage if the best sentence has the whole question.
    least_beside_complete: float = 0.8
    #: Lowest relative score for the best sentence's neighbours, which continue its thought in other words.
    least_of_neighbour: float = 0.4
    #: Share of the question's words a further sentence must contain, relative to the best, not counting its headings:
    #: below a heading with the subject, every sentence would match.
    least_own: float = 0.5
    #: Lowest share of a part's words for answering this part of the question.
    least_of_part: float = 0.4
    heading_weight: float = 0.5
    #: Weight of a single word from an expression: "second" from "second job".
    part_of_expression: float = 0.5
    #: Added to the first and second sentence below a heading which has the whole question.
    below_heading: tuple[float, float] = (0.5, 0.25)
    #: Factor for a sentence which has all question words missing in its headings: "They never expire", below "Credit
    #: hours".
    complete_value: float = 1.15
    #: Factor for an overview's row if a different passage has a section about the question.
    overview_value: float = 0.4
    #: A text with at least this many characters which another text starts with is a cut copy.
    least_cut: int = 40
    #: Factor for a sentence cut by the passage's edge, which reads badly.
    fragment_value: float = 0.5
    #: Factor for a sentence from a document other than the one the question means, for example the second health plan.
    other_document_value: float = 0.5
    #: Factor for a sentence with a figure, because most questions ask for an amount, a date or a time limit.
    figure_value: float = 1.25
    type_value: float = 1.6
    #: Factor for a date or a time limit, not only "annual", for a question with "when".
    definite_value: float = 1.1
    #: Factor for the right kind of fact below a matching heading, "Number of days".
    headed_value: float = 1.15
    #: Factor below a heading with words from the question, even if some are no terms: "Other parent".
    named_heading_value: float = 1.3
    #: Factor for a sentence without the kind of fact the question asks for.
    other_type_value: float = 0.8
    #: Factor for a document in a different language from the named country's, because the rule belongs to a different
    #: branch.
    other_branch_value: float = 0.6
    #: Lowest factor for a passage with fewer subjects from the question. From 0.3 to 0.6 the same quotations come
    #: first.
    other_subject_value: float = 0.6
    #: For follow-ups: gain for a sentence with all their words; factor for a sentence without the conversation's names;
    #: share of the best sentence's words which further quotations need.
    focus_value: float = 0.6
    other_name_value: float = 0.85
    least_of_follow_up: float = 0.7
    #: Factor for a document withdrawn according to the title.
    withdrawn_value: float = 0.5
    #: Factors for a row with the question's figure inside the range, or outside: "up to 2 years" for six years.
    inside_value: float = 2.5
    outside_value: float = 0.5
    #: Factor for a sentence pointing to the answer elsewhere.
    pointer_value: float = 0.4
    longest_pointer: int = 240
    heading_characters: int = 60
    #: Factor from each passage to the next in the list.
    next_passage: float = 0.92
    #: Sentences compared by meaning; each takes about ten milliseconds.
    most_compared: int = 16
    #: Further sentences compared for each part of a question.
    more_compared: int = 6
    #: How much lower the cosine of a quotation from a further document may be. Branches' rules on the same thing in
    #: three languages have up to 0.046 less, other sentences in their documents 0.086 or more.
    less_alike: float = 0.06
    #: Lowest score relative to the anchor, without a model of meaning: for a sentence from the asker's place to come
    #: first, and for sentences from other places to be named.
    least_of_another_place: float = 0.7
    #: How many times the next sentence's score a sentence in a different language needs to be preferred.
    stands_out: float = 1.2
    #: The most sentences from the asker's place which are compared with the best.
    most_of_own_place: int = 8
    #: The most points by meaning; all words of the question together give 1.
    meaning_weight: float = 0.8
    #: The most points by the similarity of the passage's part around a sentence, which the search already knows.
    part_weight: float = 0.8
    #: Share below which the question's words cannot tell which sentence answers.
    least_in_words: float = 0.12
    #: Share from which words alone decide and meaning is not compared.
    all_in_words: float = 0.9
    #: Share from which a sentence has the whole question.
    all_words: float = 0.99
    #: From this share of `meaning_weight` on, a sentence is near the question even without the words.
    near_in_meaning: float = 0.8
    #: Share from which words are enough. Below, further sentences from the best passage only need the second value.
    sure_in_words: float = 0.5
    least_of_unsure: float = 0.2
    #: Sentences quoted from the start of the best passage if words cannot decide.
    first_sentences: int = 3
    #: Neighbours of the best sentence, tried in this order, by offset; and the most characters in total.
    neighbours: tuple[int, int, int, int] = (-1, 1, 2, -2)
    longest_neighbourhood: int = 560
    #: Share of the question's words which a neighbour adds to the best sentence, to be set in bold as well.
    least_of_complement: float = 0.2
    #: Factor for a bare label, for example an entry in a table of contents; its most words; and the factor for an
    #: example.
    label_value: float = 0.3
    label_words: int = 6
    example_value: float = 0.7
    #: Factor for a list item: with equal scores a sentence is preferred, because it can be understood alone.
    item_value: float = 0.97
    #: Factor for a sentence only announcing the next: "An extra day costs:".
    announcement_value: float = 0.7
    #: Factor for a sentence which says whether something is allowed or possible, if the question asks this.
    permission_value: float = 1.15
    #: Factor for a sentence granting something, if the question asks for an entitlement.
    entitlement_value: float = 1.1
    #: Factor for an instruction, if the question asks for a procedure; factor for a definition of the subject, if the
    #: question asks for the meaning; factor for a contract's definitions in all other cases.
    instruction_value: float = 1.2
    definition_value: float = 1.2
    contract_definition_value: float = 0.7
    #: Factor for a sentence with a condition, and the share of the condition's words which the question must have.
    other_condition_value: float = 0.8
    least_of_condition: float = 0.3
    #: Factor for an exception to the sentence before, because the rule comes first.
    after_rule_value: float = 0.85
    #: Factors for a rule about a different group and for a different period than the question's.
    other_group_value: float = 0.75
    other_period_value: float = 0.75
    #: Factor for a rule after the probation period if the question is about the time in probation, and the reverse.
    other_stage_value: float = 0.3
    #: For languages with compounds: the shortest word which is also searched inside longer words, and the share of a
    #: compound which must be found if a text splits it.
    least_compounded: int = 5
    enough_of_compound: float = 0.7
    #: Other terms allowed between the terms of an expression: "work from the home office" matches "work from home".
    within_expression: int = 1
    #: Share of the question's words from which a sentence with all known subjects is at least "perhaps".
    share_of_subjects: float = 0.4
    #: Characters used to detect a passage's language.
    language_characters: int = 400


RULE = QuoteRule()
