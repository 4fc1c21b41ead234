#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PredicateCompiler {
  /// Shorter lists are compared element by element, which costs less than a hash.
  private static let shortestHashedList = 5

  /// Whether a value is in a list: one hash lookup per row, regardless of the list's length.
  mutating func membership(
    _ value: QueryExpression, _ list: [StoreValue], _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> Test {
    // Nothing is compared with an empty list, but its operand is checked.
    guard list.isEmpty || list.count >= PredicateCompiler.shortestHashedList else { return try comparedMembership(value, list, entity) }
    switch value {
    case .property(let path): return try membership(of: path, list, entity)
    case .object:
      guard list.allSatisfy({ if case .objectID = $0 { true } else { false } }) else { return try comparedMembership(value, list, entity) }
      let keys = Set(list.compactMap { if case .objectID(let id) = $0 { id.key } else { nil } })
      return { row, _ in keys.contains(row.key) }
    case .constant(let constant):
      let holds = list.contains { ValueComparison.holds(constant, .equalTo, $0) }
      return { _, _ in holds }
    default:  // Counts, remainders and truths are whole numbers.
      let read = try reader(value, entity)
      let (numbers, hasNil) = (Set(list.compactMap(\.equalInteger)), list.contains(.null))
      return { row, source in read(row, source).integer.map(numbers.contains) ?? hasNil }
    }
  }

  private mutating func comparedMembership(
    _ value: QueryExpression, _ list: [StoreValue], _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> Test {
    var parts: [Part] = []
    for element in list { parts.append(Part(test: try comparison(value, .equalTo, .constant(element), [], entity))) }
    return { row, source in parts.contains { $0.test(row, source) } }
  }

  private mutating func membership(
    of path: PropertyPath, _ list: [StoreValue], _ entity: ManagedObjectModel.Entity
  ) throws(QueryError) -> Test {
    let (resolved, slot, column) = try resolveValue(path, entity)
    var hasNil = false
    for element in list {
      if element == .null { hasNil = true } else { try ComparisonCheck.check(column, .equalTo, element, entity: entity.name) }
    }
    if list.contains(where: { $0 != .null }) { try resolved.checkIsInRow(entity, path) }
    let isMember = SlotMembership(slot: slot, column: column, list: list).compiled()
    if resolved.hops.isEmpty { return { [hasNil] row, _ in row.isPresent(slot) ? isMember(row) : hasNil } }
    addPath(resolved.hops)
    let hops = resolved.hops
    return { [hasNil] row, source in
      guard let end = PredicateCompiler.follow(hops, row, source), end.isPresent(slot) else { return hasNil }
      return isMember(end)
    }
  }
}

/// Whether a slot's value, which isn't nil, equals an element of a list.
///
/// Equality is defined by ``ValueComparison``: NaN equals nothing, -0.0 equals 0.0, and numbers of different types are equal if their
/// values are.
private struct SlotMembership {
  let slot: SlotIndex
  let column: ColumnType
  let list: [StoreValue]

  func compiled() -> (RowPointer) -> Bool {
    switch column.cellKind {
    case .integer, .key: whole()
    case .real: real()
    case .bytes: column == .attribute(.decimal) ? decimal() : bytes()
    }
  }

  private func whole() -> (RowPointer) -> Bool {
    let slot = slot
    let wanted = Set(
      list.compactMap { element -> Int64? in
        if case .objectID(let id) = element { return id.key.rawValue }
        return element.equalInteger
      })
    return { wanted.contains($0.integer(slot)) }
  }

  private func real() -> (RowPointer) -> Bool {
    let (slot, isDate) = (slot, column == .attribute(.date))
    // Compares bits, with a single zero. The NaN of a row isn't in the set.
    let wanted = Set(list.compactMap { $0.equalReal(isDate: isDate) }.map { ($0 + 0.0).bitPattern })
    return { wanted.contains(($0.real(slot) + 0.0).bitPattern) }
  }

  private func decimal() -> (RowPointer) -> Bool {
    let slot = slot
    var exact: Set<Decimal> = []
    var nearest: Set<Double> = []
    for element in list {
      // In the form of numbers that are read from rows: `Decimal` can have different hashes for equal numbers in different forms.
      if case .decimal(let number) = element, !number.isNaN { exact.insert(DecimalText.value(DecimalText.digits(number)) ?? number) }
      if let number = element.integer { exact.insert(Decimal(number)) } else if let number = element.real { nearest.insert(number) }
    }
    return { [exact, nearest] row in
      guard let number = DecimalText.value(row.bytes(slot)), !number.isNaN else { return false }
      return exact.contains(number) || (!nearest.isEmpty && nearest.contains(NearestNumber.double(number)))
    }
  }

  private func bytes() -> (RowPointer) -> Bool {
    let wanted = ByteSet(list.compactMap(\.comparedBytes))
    return { [slot] in wanted.contains($0.bytes(slot)) }
  }
}

extension StoreValue {
  /// The whole number that the value equals, or nil if there is none.
  var equalInteger: Int64? {
    switch self {
    case .date(let number): return Int64(exactly: number)
    case .decimal(let number):
      guard !number.isNaN, let whole = Int64(number.description.prefix { $0 != "." }) else { return nil }
      return Decimal(whole) == number ? whole : nil
    default: return integer
    }
  }

  /// The floating-point number that the value equals, or nil if there is none.
  ///
  /// A decimal equals a whole number if all its digits do. Otherwise, and for dates, it equals the nearest floating-point number.
  fileprivate func equalReal(isDate: Bool) -> Double? {
    guard case .decimal(let number) = self else { return real.flatMap { $0.isNaN ? nil : $0 } }
    let nearest = NearestNumber.double(number)
    if nearest.isNaN { return nil }
    guard !isDate, let whole = Int64(exactly: nearest) else { return nearest }
    return Decimal(whole) == number ? nearest : nil
  }

  /// The value as bytes, for types that are ordered by bytes. Nil for numbers.
  var comparedBytes: [UInt8]? {
    switch self {
    case .string(let text), .uri(let text): Array(text.utf8)
    case .data(let data): data.withUnsafeBytes { Array($0) }
    case .uuid(let uuid): withUnsafeBytes(of: uuid.uuid) { Array($0) }
    case .objectID(let id): Array(id.uriRepresentation.utf8)
    default: nil
    }
  }
}
