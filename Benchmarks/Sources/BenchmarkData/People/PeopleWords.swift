/// The words for names, addresses and notes. All reference figures depend on them: do not change.
enum PeopleWords {
  static let given = utf8([
    "Anna", "Åsa", "Bertil", "Chloë", "Dario", "Émile", "Fatima", "Göran", "Hanako", "Ingrid", "Jürgen", "Karim",
    "Łucja", "Marta", "Niño", "Olga", "Pavel", "Quentin", "Renée", "Søren", "Tomás", "Ulrike", "Věra", "Walter",
    "Ximena", "Yusuf", "Zoë", "Amara", "Aiko", "Björn", "Анна", "李娜", "Carlos", "Denise", "Erik", "Greta",
  ])
  /// The spelling of each given name in an email address.
  static let login = utf8([
    "anna", "asa", "bertil", "chloe", "dario", "emile", "fatima", "goran", "hanako", "ingrid", "jurgen", "karim",
    "lucja", "marta", "nino", "olga", "pavel", "quentin", "renee", "soren", "tomas", "ulrike", "vera", "walter",
    "ximena", "yusuf", "zoe", "amara", "aiko", "bjorn", "anya", "lina", "carlos", "denise", "erik", "greta",
  ])
  static let family = utf8([
    "Lindqvist", "Okafor", "Müller", "Petrov", "Nakamura", "Fernández", "Ødegaard", "Kowalska", "Rossi", "Dubois",
    "Hughes", "Yılmaz", "Novák", "Svensson", "Haddad", "Castro", "Ivanova", "Jansen", "Murphy", "Sørensen", "Tanaka",
    "Weiß", "Moreau", "Silva",
  ])
  static let notes = utf8([
    "prefers", "morning", "calls", "about", "the", "yearly", "report", "résumé", "pending", "review", "of", "orders",
    "from", "Zürich", "and", "asked", "for", "a", "copy", "by", "post", "met", "at", "trade", "fair", "in", "Málaga",
    "likes", "short", "letters", "with", "tables",
  ])
  static let trade = utf8(["Foods", "Steel", "Optics", "Freight", "Paper", "Systems", "Énergie", "Glass"])

  private static func utf8(_ words: [String]) -> [[UInt8]] { words.map { Array($0.utf8) } }
}
