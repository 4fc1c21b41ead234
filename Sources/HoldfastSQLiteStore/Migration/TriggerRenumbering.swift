import HoldfastStore

/// Replaces what depends on entity numbers in Core Data's triggers for derived attributes.
///
/// These are the names of join tables, the names of columns with the number of an entity, and conditions such as
/// `1 <= Z_ENT AND Z_ENT <= 2`, which mean an entity and its subentities.
struct TriggerRenumbering {
  /// The numbers of an entity and its subentities.
  private struct Numbers: Equatable {
    var first: Int64
    var last: Int64

    init(_ entity: ManagedObjectModel.Entity, _ schema: StoreSchema) {
      let numbers = entity.familyIndexes.map { schema.tables[$0].number }
      (first, last) = (numbers.min() ?? 0, numbers.max() ?? 0)
    }
  }

  /// The former and new numbers of the remaining entities, by the first of the former ones.
  private var numbers: [Int64: (old: Numbers, new: Numbers)] = [:]
  /// The new names by the former ones, in upper case.
  private var names: [String: Set<String>] = [:]

  init(_ mapping: MappingModel, _ old: StoreSchema, _ new: StoreSchema) {
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
        if name == Self.entity && !Self.isKnownUse(tokens, place) { return nil }
        guard let newNames = names[name] else { continue }
        guard newNames.count == 1, let newName = newNames.first else { return nil }
        list.append((place, newName))
      } else if token.kind == .number {
        let value = Int64(String(decoding: token.bytes, as: UTF8.self))
        if Self.isLeast(tokens, place) {
          guard let known = value.flatMap({ numbers[$0] }) else { return nil }
          entity = known
          list.append((place, String(known.new.first)))
        } else if Self.isMost(tokens, place) {
          guard let known = entity, known.old.last == value else { return nil }
          list.append((place, String(known.new.last)))
        } else if Self.isOnly(tokens, place) {
          guard let known = value.flatMap({ numbers[$0] }), known.new.first == known.new.last else { return nil }
          list.append((place, String(known.new.first)))
        }
      }
    }
    return list
  }

  private static let entity = "Z_ENT"

  private static func isEntity(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    tokens.indices.contains(place) && tokens[place].name == entity
  }

  private static func isSymbol(_ character: Character, _ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    tokens.indices.contains(place) && tokens[place].isSymbol(character)
  }

  /// Whether a number is that of `1 <= Z_ENT` or `1 <= NEW.Z_ENT`.
  private static func isLeast(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    isSymbol("<", tokens, place + 1) && isSymbol("=", tokens, place + 2)
      && (isEntity(tokens, place + 3) || isSymbol(".", tokens, place + 4) && isEntity(tokens, place + 5))
  }

  /// Whether a number is that of `Z_ENT <= 2`.
  private static func isMost(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    isEntity(tokens, place - 3) && isSymbol("<", tokens, place - 2) && isSymbol("=", tokens, place - 1)
  }

  /// Whether a number is that of `Z_ENT = 2`.
  private static func isOnly(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    isEntity(tokens, place - 2) && isSymbol("=", tokens, place - 1)
  }

  /// Whether an entity's number is only passed on, or compared in one of these ways.
  private static func isKnownUse(_ tokens: [SQLTokens.Token], _ place: Int) -> Bool {
    guard tokens.indices.contains(place + 1) else { return false }
    let next = tokens[place + 1]
    if next.isSymbol(",") || next.isSymbol(")") || next.isSymbol(";") || next.isWord("AND") || next.isWord("BEGIN") || next.isWord("FROM") {
      return true
    }
    func isNumber(_ place: Int) -> Bool { tokens.indices.contains(place) && tokens[place].kind == .number }
    if next.isSymbol("=") { return isNumber(place + 2) }
    return next.isSymbol("<") && isSymbol("=", tokens, place + 2) && isNumber(place + 3)
  }
}
