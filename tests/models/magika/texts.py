"""Generates text files of many kinds from the pieces in texts.txt, for the corpus that file type
classifiers are compared on.

That file has a section for each kind, headed by its name and its files' ending. A section is split
by lines of %%%: the first piece comes once, those between are repeated at random, the last ends the
file. A placeholder such as @noun@ is drawn anew at each place, one with a digit (@noun1@) stays the
same within its piece.
"""

import pathlib
import re

NOUNS = """account address archive array balance basket batch bridge bucket buffer button cache
calendar camera channel circle client cluster color column comment config counter course cursor
customer device document driver engine event factory filter folder forest frame garden graph header
image index input invoice item journal kernel label layer library list machine market matrix member
message metric mirror module monitor network node order output packet panel parser payment picture
planet player point portal process product profile project queue random record region report request
result river route sample schedule sensor server session shape signal socket source station storage
stream street student summary table target teacher template thread ticket token tree user vector
version village volume wallet weather widget window worker""".split()
VERBS = """add append apply build cancel check clean collect compare compute convert copy count
create decode delete drop emit encode fetch find flush format handle insert join load lock map
measure merge move notify open parse print push read release remove render reset resolve restore
run save scan search select send sort split start stop store sum sync test trim update validate
wait walk write""".split()
ADJECTIVES = """big blue broken clean dark early empty fast final first full global green heavy
hidden large last local long new old open other private public quick quiet red remote round
secret sharp short simple slow small soft steady strange strong warm wide young""".split()
PEOPLE = """Anna Berg;Brian Cole;Carla Diaz;David Evans;Elena Fischer;Frank Garcia;Grace Hall;Henry
Ito;Ines Jensen;Jack Kim;Karin Lopez;Liam Meyer;Maria Novak;Noah Olsen;Olga Petrov;Paul
Quinn""".replace("\n", " ").split(";")
FOREIGN = """café naïve Größe über señor garçon fjord æra smörgås piñata déjà façade Zürich crème
jalapeño Øresund""".split()
WIDE = """日本語 Привет мир Καλημέρα 中文字符 한국어 שלום مرحبا → ≤ ✓ 😀 “quoted”""".split()


def sentence(rng):
    """Returns an English-like sentence; one in twelve holds words beyond ASCII."""
    words = [
        rng.choice(["The", "A", "This", "Every", "Our", "No"]),
        rng.choice(ADJECTIVES),
        rng.choice(NOUNS),
        rng.choice(["can", "will", "must", "should", "does not", "may"]),
        rng.choice(VERBS),
        rng.choice(["the", "a", "each", "one", "all of the"]),
        rng.choice(NOUNS),
    ]
    if rng.random() < 0.5:
        words += [rng.choice(["before", "after", "when", "because"]), "the", rng.choice(NOUNS)]
        words += [rng.choice(["is", "was", "becomes"]), rng.choice(ADJECTIVES)]
    if rng.random() < 1 / 12:
        words.insert(2, rng.choice(FOREIGN if rng.random() < 0.5 else WIDE))
    return " ".join(words) + "."


def hexadecimal(rng, digits):
    return "".join(rng.choice("0123456789abcdef") for _ in range(digits))


def base64_line(rng):
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return "".join(rng.choice(alphabet) for _ in range(64))


DRAWS = {
    "noun": lambda rng: rng.choice(NOUNS),
    "Noun": lambda rng: rng.choice(NOUNS).capitalize(),
    "NOUN": lambda rng: rng.choice(NOUNS).upper(),
    "verb": lambda rng: rng.choice(VERBS),
    "Verb": lambda rng: rng.choice(VERBS).capitalize(),
    "adj": lambda rng: rng.choice(ADJECTIVES),
    "name": lambda rng: rng.choice(PEOPLE),
    "email": lambda rng: f"{rng.choice(NOUNS)}.{rng.choice(NOUNS)}@example.org",
    "ip": lambda rng: ".".join(str(rng.randrange(1, 255)) for _ in range(4)),
    "date": lambda rng: (
        f"20{rng.randrange(10, 26)}-0{rng.randrange(1, 10)}-{rng.randrange(10, 29)}"
    ),
    "sentence": sentence,
    "n": lambda rng: str(rng.randrange(10 ** rng.randrange(1, 4))),
    "d": lambda rng: str(rng.randrange(1, 10)),
    "dd": lambda rng: str(rng.randrange(10, 29)),
    "ddd": lambda rng: str(rng.randrange(100, 1000)),
    "f": lambda rng: f"{rng.uniform(0, 100):.{rng.randrange(1, 4)}f}",
    "hex": lambda rng: hexadecimal(rng, 8),
    "hex2": lambda rng: hexadecimal(rng, 2),
    "hex6": lambda rng: hexadecimal(rng, 6),
    "hex7": lambda rng: hexadecimal(rng, 7),
    "b64": base64_line,
}
# A digit is part of these names; in others it makes the placeholder keep its word.
PLACE = re.compile(r"@(hex2|hex6|hex7|b64|[A-Za-z]+?)([1-9]?)@")


def fill(rng, piece, counter):
    kept = {}

    def draw(match):
        name, digit = match.groups()
        if name == "i":
            return str(counter)
        if name not in DRAWS:
            return match.group(0)
        if not digit:
            return DRAWS[name](rng)
        word = kept.get(digit) or rng.choice(NOUNS if name.lower() == "noun" else VERBS)
        if name.lower() == "noun":
            kept[digit] = word
        else:
            word = kept.setdefault("verb" + digit, rng.choice(VERBS))
        return word if name.islower() else word.upper() if name.isupper() else word.capitalize()

    return PLACE.sub(draw, piece)


def load():
    """Returns {kind: (ending, [piece])}."""
    text = pathlib.Path(__file__).with_name("texts.txt").read_text(encoding="utf-8")
    kinds = {}
    for section in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, body = section.split("\n", 1)
        kind, ending = head.split()
        pieces = ("\n" + body).split("\n%%%")
        kinds[kind] = ending, [piece[1:] + "\n" if piece[1:] else "" for piece in pieces]
    return kinds


def compose(rng, pieces, size):
    """Returns a text of at least `size` characters, unless the kind has nothing to repeat."""
    head, *middle, tail = pieces
    out = [fill(rng, head, 0)]
    length, counter = len(out[0]), 0
    while middle and (length < size or counter == 0):
        counter += 1
        out.append(fill(rng, rng.choice(middle), counter))
        length += len(out[-1])
    return "".join(out) + fill(rng, tail, counter + 1)


def small(rng, pieces, order):
    return compose(rng, pieces, 300).encode()


def medium(rng, pieces, order):
    return compose(rng, pieces, 1800).encode()


def odd(rng, pieces, order):
    """Makes texts with unusual line ends, encodings and white space, one per kind."""
    text = compose(rng, pieces, rng.randrange(1000, 9000))
    if order % 5 == 0:
        return text.replace("\n", "\r\n").encode()
    if order % 5 == 1:
        return ("\n \t\n" * rng.randrange(1, 200) + text).encode()
    if order % 5 == 2:
        return text.encode("latin-1", "replace")
    if order % 5 == 3:
        return text.encode() + b" \n" * rng.randrange(100, 3000)
    return b"\xef\xbb\xbf" + text.encode()


def large(rng, pieces, order):
    return compose(rng, pieces, rng.randrange(10_000, 100_000)).encode()


VARIANTS = {"small": small, "medium": medium, "odd": odd, "large": large}
