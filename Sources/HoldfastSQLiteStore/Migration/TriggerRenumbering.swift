import HoldfastStore

/// Replaces what depends on entity numbers in Core Data's triggers for derived attributes.
///
/// These are the names of join tables, the names of columns with the number of an entity, and conditions such as
/// `1 <= Z_ENT AND Z_ENT <= 2`, which mean an entity and its subentities.
struct TriggerRenumbering {
  /// The numbers of an entity and its subentities.
  private struct Numbers: Equatable {
    /// In ascending order.
    let numbers: [Int64]
    var first: Int64 { numbers.first ?? 0 }
    var last: Int64 { numbers.last ?? 0 }

    init(_ entity: ManagedObjectModel.Entity, _ schema: StoreSchema) {
      numbers = entity.familyIndexes.map { schema.tables[$0].number }.sorted()
    }
  }

  /// The former and new numbers of the remaining entities, by the first of the former ones.
  private var numbers: [Int64: (old: Numbers, new: Numbers)] = [:]
  /// The former numbers of all entities.
  private let formerNumbers: [Int64]
  /// The new names by the former ones, in upper case.
  private var names: [String: Set<String>] = [:]
  /// The former columns with the number of an entity, in upper case.
  private var entityColumns: Set<String> = ["Z_ENT"]

  init(_ mapping: MappingModel, _ old: StoreSchema, _ new: StoreSchema) {
    formerNumbers = old.tables.map(\.number)
    for table in old.tables { entityColumns.formUnion(table.entityColumns.lazy.filter { !$0.isEmpty }.map(SQLName.upper)) }
    for entity in mapping.source.entities {
      guard let destination = mapping.destination(of: entity.index) else { continue }
      let former = Numbers(entity, old)
      numbers[former.first] = (former, Numbers(mapping.destination.entities[destination], new))
    }
    let former = FormerColumns(mapping: mapping, schema: old)
    for relationship in mapping.destination.entities.flatMap(\.relationships) {
      guard let link = mapping.link(relationship) else { continue }
      let source = mapping.relationship(link)
      if relationship.isManyToMany && source.isManyToMany && relationship.hasInverse == source.hasInverse {
        let side = link.isReversed ? old.link(source).inverse : old.link(source), newSide = new.link(relationship)
        add(side.near, newSide.near)
        if !link.isReversed { add(old.orderColumn(source), new.orderColumn(relationship)) }
        if !relationship.hasInverse { continue }
        add(side.table, newSide.table)
        add(side.far, newSide.far)
      } else if !relationship.isToMany {
        add(
          former.local(link, rowIsDestination: false)?.entity, new.tables[relationship.entityIndex].entityColumn(relationship.slot))
      }
    }
  }

  private mutating func add(_ name: String?, _ newName: String?) {
    if let name, let newName { names[SQLName.upper(name), default: []].insert(newName) }
  }

  private var isIdentity: Bool {
    numbers.values.allSatisfy { $0.old == $0.new } && names.allSatisfy { name, new in new.allSatisfy { SQLName.upper($0) == name } }
  }

  /// A statement with the new names and numbers; nil if the meaning of one in it isn't known.
  func statement(_ sql: String) -> String? {
    isIdentity ? sql : SQLTokens.replacing(in: sql, replacements)
  }

  // MARK: Tokens

  /// The texts that replace tokens, in their order; nil if the meaning of one isn't known.
  private func replacements(_ tokens: [SQLTokens.Token]) -> [(place: Int, text: String)]? {
    var list: [(place: Int, text: String)] = []
    // The entity whose first number is the last one that was read.
    var entity: (old: Numbers, new: Numbers)?
    for (place, token) in tokens.enumerated() {
      if let name = token.name {
        if entityColumns.contains(name) && !isKnownUse(tokens, place) { return nil }
        guard let newNames = names[name] else { continue }
        guard newNames.count == 1, let newName = newNames.first else { return nil }
        list.append((place, newName))
      } else if token.kind == .number {
        let value = Int64(String(decoding: token.bytes, as: UTF8.self))
        if isLeast(tokens, place) {
          guard let known = value.flatMap({ numbers[$0] }) else { return nil }
          entity = known
          list.append((place, String(known.new.first)))
        } else if isMost(tokens, place) {
          guard let known = entity, let value, isLast(value, of: known.old) else { return nil }
          list.append((place, String(known.new.last)))
        } else if isOnly(tokens, place) {
          guard let known = value.flatMap({ numbers[$0] }), known.new.first == known.new.last else { return nil }
          list.append((place, String(known.new.first)))
        }
      }
    }
    return list
  }

  /// Whether a condition with this last number means the family.
  ///
  /// Holdfast has added subentities to files without changing other numbers. Theirs are larger than those in the triggers.
  private func isLast(_ number: Int64, of family: Numbers) -> Bool {
    family.numbers.contains(number)
      && !formerNumbers.contains { family.first < $0 && $0 < number && !family.numbers.contains($0) }
  }

  private func isEntity(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    tokens.indices.contains(place) && tokens[place].name.map(entityColumns.contains) ?? false
  }

  private static func isSymbol(_ character: Character, _ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    tokens.indices.contains(place) && tokens[place].isSymbol(character)
  }

  private static func isNumber(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    tokens.indices.contains(place) && tokens[place].kind == .number
  }

  /// Whether a number is that of `1 <= Z_ENT` or `1 <= NEW.Z_ENT`.
  private func isLeast(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    Self.isSymbol("<", tokens, place + 1) && Self.isSymbol("=", tokens, place + 2)
      && (isEntity(tokens, place + 3) || Self.isSymbol(".", tokens, place + 4) && isEntity(tokens, place + 5))
  }

  /// Whether a number is that of `Z_ENT <= 2`.
  private func isMost(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    isEntity(tokens, place - 3) && Self.isSymbol("<", tokens, place - 2) && Self.isSymbol("=", tokens, place - 1)
  }

  /// Whether a number is that of `Z_ENT = 2`.
  private func isOnly(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    isEntity(tokens, place - 2) && Self.isSymbol("=", tokens, place - 1)
  }

  /// Whether an entity's number is only passed on or looked for, or compared in one of these ways.
  private func isKnownUse(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    let first = Self.isSymbol(".", tokens, place - 1) ? place - 2 : place
    guard tokens.indices.contains(first - 1), tokens.indices.contains(place + 1) else { return false }
    let (before, next) = (tokens[first - 1], tokens[place + 1])
    if before.isSymbol("=") { return Self.isNumber(tokens, first - 3) && isLeast(tokens, first - 3) && Self.isEnd(next) }
    guard before.isSymbol("(") || before.isSymbol(",") || Self.wordsBefore.contains(where: { before.isWord($0) }) else { return false }
    if next.isSymbol("=") { return Self.isNumber(tokens, place + 2) }
    if next.isSymbol("<") { return Self.isSymbol("=", tokens, place + 2) && Self.isNumber(tokens, place + 3) }
    return Self.isEnd(next) || next.isWord("NOT") && tokens.indices.contains(place + 2) && tokens[place + 2].isWord("NULL")
  }

  /// Whether an expression ends before a token.
  private static func isEnd(_ token: SQLTokens.Token) -> Bool {
    token.isSymbol(",") || token.isSymbol(")") || token.isSymbol(";") || wordsAfter.contains { token.isWord($0) }
  }

  private static let wordsBefore: [StaticString] = ["WHERE", "AND", "WHEN", "OF"]
  private static let wordsAfter: [StaticString] = ["AND", "BEGIN", "FROM", "ON"]
}
