import HoldfastStore

/// Tests rule F1 of the store contract for each declared capability: the store must return the same rows as the reference evaluator.
enum PredicateCases {
  static let all =
    AttributeType.storedCases.flatMap(typeCases) + [
      StoreConformanceCase("F1", "nil in comparisons", requires: needs([.equality, .order], [.integer16, .string]), comparisonsWithNil),
      StoreConformanceCase("F1", "comparisons of objects and to-one destinations", requires: needs([.equality], []), objects),
      StoreConformanceCase(
        "F1", "comparisons that ignore case and diacritics", requires: needs([.equality, .substrings, .folding], [.string]), folded),
      StoreConformanceCase(
        "F1", "AND, OR and NOT",
        requires: needs([.equality, .order], [.integer64, .string, .boolean, .double]) { $0.booleanOperators = true }, booleans),
      StoreConformanceCase(
        "F1", "paths through to-one relationships",
        requires: needs([.equality, .order], [.string, .integer32]) { $0.traversal = .toOne }, toOnePaths),
      StoreConformanceCase(
        "F1", "ANY and ALL over to-many relationships",
        requires: needs([.equality, .order], [.string, .integer16]) { $0.traversal = .quantifiers }, quantifiers),
      StoreConformanceCase(
        "F1", "ANY and ALL combined with to-one paths",
        requires: needs([.equality, .order], [.string, .integer16]) { $0.traversal = [.quantifiers, .toOne] }, quantifiersOnPaths),
      StoreConformanceCase(
        "F1", "counts of to-many relationships", requires: needs([.equality, .order], []) { $0.traversal = .counts }, counts),
      StoreConformanceCase(
        "F1", "predicates at the declared limits",
        requires: needs([.equality, .order], [.integer16]) {
          $0.booleanOperators = true
          $0.traversal = .quantifiers
        }, limits),
      StoreConformanceCase("F1", "lookups by unique values", requires: .with { $0.uniqueLookups = true }, uniqueLookups),
      StoreConformanceCase("F6", "keys of rows with a unique value", requires: .with { $0.uniqueLookups = true }, uniqueKeys),
      StoreConformanceCase(
        "F3", "offset and limit apply to the row with a unique value",
        requires: .with {
          $0.uniqueLookups = true
          $0.windowing = true
        }, uniqueWindows),
      StoreConformanceCase("F1", "lookups by unusual unique values", requires: .with { $0.uniqueLookups = true }, unusualUniqueLookups),
      StoreConformanceCase(
        "F1", "lookups by constraints on several attributes", requires: .with { $0.uniqueLookups = true }, compositeLookups),
      StoreConformanceCase(
        "F1", "lookups by unique values after changes", requires: .with { $0.uniqueLookups = true }, uniqueLookupsAfterChanges),
      StoreConformanceCase(
        "F6", "counts of rows with a predicate", requires: needs([.equality], [.string]) { $0.counting = true }, countsWithPredicate),
    ]

  static func needs(
    _ comparisons: ComparisonCapabilities, _ types: AttributeTypes, _ more: (inout StoreCapabilities) -> Void = { _ in }
  ) -> StoreCapabilities {
    .with {
      $0.comparisons = comparisons
      $0.comparedTypes = types
      more(&$0)
    }
  }

  private static func typeCases(_ type: AttributeType) -> [StoreConformanceCase] {
    let name = type.rawValue
    // Transformed values are only compared with nil, and object IDs aren't ordered.
    if type == .transformable || type == .objectID {
      return [
        StoreConformanceCase("F1", "equality on \(name)", requires: needs([.equality], AttributeTypes(type))) { run in
          try compare(
            type, [.equalTo, .notEqualTo],
            (type == .objectID ? ConformanceValues.constants(of: type, run.harness.capabilities) : []) + [.null], run)
        }
      ]
    }
    var cases = [
      StoreConformanceCase("F1", "equality on \(name)", requires: needs([.equality], AttributeTypes(type))) { run in
        try compare(type, [.equalTo, .notEqualTo], ConformanceValues.constants(of: type, run.harness.capabilities) + [.null], run)
      },
      StoreConformanceCase("F1", "order on \(name)", requires: needs([.order], AttributeTypes(type))) { try ordered(type, $0) },
      StoreConformanceCase("F1", "membership on \(name)", requires: needs([.membership], AttributeTypes(type)) { $0.maximumListCount = 8 })
      {
        try members(type, $0)
      },
      StoreConformanceCase(
        "F6", "counts of rows with a predicate on \(name)", requires: needs([.equality], AttributeTypes(type)) { $0.counting = true }
      ) { try countsByType(type, $0) },
    ]
    if type == .string || type == .uri {
      cases.append(
        StoreConformanceCase("F1", "substrings on \(name)", requires: needs([.substrings], AttributeTypes(type))) { run in
          try compare(type, [.beginsWith, .endsWith, .contains], parts, run)
        })
    }
    return cases
  }

  private static let parts: [StoreValue] =
    [
      "", "a", "A", "b", "bc", "abc", "\u{E9}", "e\u{301}", "\u{301}", "%", "_", "*", "?", "\u{0}", "'", "\u{1F600}", "a#f", "https:", "/",
      "\r", "\n", "\r\n", "\u{FEFF}",
    ]
    .map { .string($0) }

  // MARK: Comparing with the reference

  private static func compare(_ type: AttributeType, _ operators: [ComparisonOperator], _ constants: [StoreValue], _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = QueryExpression.property(PropertyPath(ConformanceModel.attributeName(type)))
    for op in operators {
      for constant in constants { try ask(.comparison(path, op, .constant(constant), []), "Sample", store, graph) }
    }
  }

  /// Sends the request to the store and to the reference evaluator, and compares the rows.
  static func ask(_ predicate: QueryExpression, _ entity: String, _ store: TestedStore, _ graph: ExpectedGraph) throws {
    let expected = try matching(predicate, entity, store, graph)
    try store.expectRows(store.fetch(store.plan(entity, predicate)), expected, "the rows of \(entity) where \(predicate)")
  }

  static func matching(_ predicate: QueryExpression, _ entity: String, _ store: TestedStore, _ graph: ExpectedGraph) throws -> [RowView] {
    let test = try RowPredicate(predicate, entity: store.entity(entity), model: store.model)
    return graph.rows(entity).values.filter { test.matches($0.pointer, graph) }
  }

  private static func ordered(_ type: AttributeType, _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = QueryExpression.property(PropertyPath(ConformanceModel.attributeName(type)))
    let constants = ConformanceValues.constants(of: type, run.harness.capabilities)
    for constant in constants {
      for op in [ComparisonOperator.lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo] {
        try ask(.comparison(path, op, .constant(constant), []), "Sample", store, graph)
      }
    }
    for (index, lower) in constants.enumerated() {
      try ask(.between(path, lower, constants[(index * 2 + 1) % constants.count]), "Sample", store, graph)
      try ask(.between(path, lower, lower), "Sample", store, graph)
    }
  }

  private static func members(_ type: AttributeType, _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = QueryExpression.property(PropertyPath(ConformanceModel.attributeName(type)))
    let constants = ConformanceValues.constants(of: type, run.harness.capabilities)
    try ask(.membership(path, []), "Sample", store, graph)
    for size in [1, 2, 5, 8] {
      for start in constants.indices {
        let list = (0..<min(size, constants.count)).map { constants[(start + $0) % constants.count] }
        try ask(.membership(path, list), "Sample", store, graph)
        if size < 8 { try ask(.membership(path, list + [.null]), "Sample", store, graph) }
      }
    }
    // Stores can use other algorithms for long lists.
    for size in [9, 40, 400, 10_000] where size <= store.store.capabilities.maximumListCount {
      let list = (0..<size).map { $0 % 3 == 0 ? constants[$0 % constants.count] : constants[0] }
      try ask(.membership(path, list), "Sample", store, graph)
      try ask(.membership(path, [.null] + list.dropFirst()), "Sample", store, graph)
    }
  }

  // MARK: Limits

  /// Predicates at all declared limits at once, up to the size that queries need in practice.
  private static func limits(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let declared = store.store.capabilities
    let levels = min(declared.maximumNesting, 20), conditions = min(declared.maximumConditions, 1000)
    for quantifiers in 0...min(declared.maximumQuantifierNesting, levels - 1, 5) {
      for isNegated in [false, true] {
        let chains = levels - 1 - quantifiers
        let width = max(1, conditions / max(1, chains) - 1)
        var (nested, left) = (adults, quantifiers)
        for level in 1..<levels {
          let op = level % 2 == 0 ? ComparisonOperator.notEqualTo : .equalTo
          let beside = (0..<width).map { QueryExpression.comparison(.property("age"), op, .constant(.int16(Int16(100 + $0))), []) }
          if left > 0 {
            left -= 1
            nested = left % 2 == 0 ? .any("friends", nested) : .all("friends", nested)
          } else if isNegated {
            nested = .not(nested)
          } else {
            nested = level % 2 == 0 ? .and(beside + [nested]) : .or(beside + [nested])
          }
        }
        try ask(nested, "Person", store, graph)
      }
    }
  }

  // MARK: Single capabilities

  private static func comparisonsWithNil(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for name in ["age", "city"] {
      for op in [ComparisonOperator.equalTo, .notEqualTo, .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo] {
        try ask(.comparison(.property(PropertyPath(name)), op, .constant(.null), []), "Person", store, graph)
      }
    }
    try ask(.comparison(.property("city"), .notEqualTo, .constant(.string("City 1")), []), "Person", store, graph)
    try ask(.comparison(.property("city"), .equalTo, .property("code"), []), "Person", store, graph)
    try ask(.comparison(.property("city"), .notEqualTo, .property("code"), []), "Person", store, graph)
    try ask(.comparison(.constant(.int16(20)), .lessThan, .property("age"), []), "Person", store, graph)
  }

  private static func objects(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let person = graph.rows("Person").keys.min() ?? 0, company = graph.rows("Company").keys.min() ?? 0
    let personID = StoreValue.objectID(store.identity.objectID(entity: store.entity("Person"), key: person))
    let companyID = StoreValue.objectID(store.identity.objectID(entity: store.entity("Company"), key: company))
    for op in [ComparisonOperator.equalTo, .notEqualTo] {
      try ask(.comparison(.object, op, .constant(personID), []), "Person", store, graph)
      try ask(.comparison(.property("employer"), op, .constant(companyID), []), "Person", store, graph)
      try ask(.comparison(.property("employer"), op, .constant(.null), []), "Person", store, graph)
      try ask(.comparison(.property("holder"), op, .constant(personID), []), "Passport", store, graph)
    }
  }

  private static func folded(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = QueryExpression.property(PropertyPath(ConformanceModel.attributeName(.string)))
    let foldings: [TextFolding] = [.caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]]
    for text in ["", "A", "CAF\u{C9}", "cafe", "Cafe\u{301}", "strasse", "STRA\u{1E9E}E", "abc", "IT'S", "missing"] {
      for folding in foldings {
        for op in [ComparisonOperator.equalTo, .notEqualTo, .beginsWith, .endsWith, .contains] {
          try ask(.comparison(path, op, .constant(.string(text)), folding), "Sample", store, graph)
        }
      }
    }
  }

  private static func booleans(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let a = comparison(.integer64, .greaterThan, .int64(0)), b = comparison(.string, .equalTo, .string("abc"))
    let c = comparison(.double, .lessThan, .double(1)), d = comparison(.integer64, .equalTo, .null)
    let flag = QueryExpression.property(PropertyPath(ConformanceModel.attributeName(.boolean)))
    let questions: [QueryExpression] = [
      .and([a, c]), .or([a, b]), .not(a), .not(b), .not(d), .and([]), .or([]), .and([a]), .or([b]), .not(.and([a, c])),
      .not(.or([a, b, c])),
      .and([.or([a, b]), .not(c)]), .or([.and([a, c]), .and([b, .not(d)])]), .not(.not(a)), flag, .not(flag), .and([flag, a]),
      .literal(true),
      .literal(false), .not(.literal(true)), .or([.literal(false), b]), .and([.not(a), .not(d)]),
    ]
    for question in questions { try ask(question, "Sample", store, graph) }
  }

  private static func comparison(_ type: AttributeType, _ op: ComparisonOperator, _ value: StoreValue) -> QueryExpression {
    .comparison(.property(PropertyPath(ConformanceModel.attributeName(type))), op, .constant(value), [])
  }

  private static func toOnePaths(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for op in [ComparisonOperator.equalTo, .notEqualTo, .lessThan, .greaterThanOrEqualTo] {
      try ask(.comparison(.property("employer.name"), op, .constant(.string("Company 1")), []), "Person", store, graph)
      try ask(.comparison(.property("employer.size"), op, .constant(.int32(100)), []), "Person", store, graph)
      try ask(.comparison(.property("employer.size"), op, .constant(.null), []), "Person", store, graph)
      try ask(.comparison(.property("holder.employer.name"), op, .constant(.string("Company 0")), []), "Passport", store, graph)
      try ask(.comparison(.property("passport.number"), op, .constant(.string("P2")), []), "Person", store, graph)
      try ask(.comparison(.property("passport.number"), op, .property("name"), []), "Person", store, graph)
    }
  }

  private static let adults = QueryExpression.comparison(.property("age"), .greaterThanOrEqualTo, .constant(.int16(20)), [])

  private static func quantifiers(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let named = QueryExpression.comparison(.property("name"), .equalTo, .constant(.string("Person 3")), [])
    let ageless = QueryExpression.comparison(.property("age"), .equalTo, .constant(.null), [])
    for part in [adults, named, ageless] {
      for (entity, path) in [("Company", "employees"), ("Person", "friends"), ("Person", "friendOf"), ("Club", "members")] {
        try ask(.any(PropertyPath(path), part), entity, store, graph)
        try ask(.all(PropertyPath(path), part), entity, store, graph)
      }
    }
    try ask(.any("friends", .any("friends", named)), "Person", store, graph)
    try ask(.all("employees", .any("friends", adults)), "Company", store, graph)
    try ask(.any("clubs", .all("members", adults)), "Person", store, graph)
  }

  private static func quantifiersOnPaths(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let inCompany = QueryExpression.comparison(.property("employer.name"), .equalTo, .constant(.string("Company 1")), [])
    try ask(.any("employer.employees", adults), "Person", store, graph)
    try ask(.all("employer.employees", adults), "Person", store, graph)
    try ask(.any("friends", inCompany), "Person", store, graph)
    try ask(.all("friends", inCompany), "Person", store, graph)
    try ask(.any("holder.friends", inCompany), "Passport", store, graph)
  }

  private static func counts(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for (entity, path) in [
      ("Company", "employees"), ("Person", "friends"), ("Person", "friendOf"), ("Person", "clubs"), ("Club", "members"),
    ] {
      for op in [ComparisonOperator.equalTo, .notEqualTo, .greaterThan, .lessThanOrEqualTo] {
        for number in [0, 1, 3] as [Int64] {
          try ask(.comparison(.count(PropertyPath(path)), op, .constant(.int64(number)), []), entity, store, graph)
        }
      }
    }
  }

  private static func uniqueLookups(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for index in 0..<26 {
      try ask(lookup("code", .string("c\(index)")), "Person", store, graph)
      try ask(lookup("number", .int64(Int64(index) * 10)), "Person", store, graph)
    }
    for constant in [StoreValue.string(""), .string("C1"), .string("c1 "), .string("c")] {
      try ask(lookup("code", constant), "Person", store, graph)
    }
    for constant in [StoreValue.int64(-1), .int64(15), .int32(20), .double(30), .double(30.5)] {
      try ask(lookup("number", constant), "Person", store, graph)
    }
  }

  private static func uniqueKeys(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), people = graph.rows("Person").keys.sorted()
    // So that not all rows have the same version.
    try store.save(graph) { $0.update("Person", people[0], ["name": .string("renamed")]) }
    for code in ["c0", "c1", "missing"] {
      let predicate = lookup("code", .string(code)), expected = try matching(predicate, "Person", store, graph)
      var plan = store.plan("Person", predicate)
      plan.output = .keys
      let got = try store.fetch(plan)
      run.expectEqual(got.map(\.key), expected.map(\.key), "the keys of people with the code \(code)")
      run.expectEqual(got.map(\.version), expected.map(\.version), "the versions in key-only rows of people with the code \(code)")
      for row in got {
        run.expect(row.batch.layout == .keysOnly, "key-only rows of a look-up to have no columns", got: "\(row.batch.layout.columns)")
      }
    }
  }

  private static func uniqueWindows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), predicate = lookup("code", .string("c1"))
    let found = try matching(predicate, "Person", store, graph).map(\.key)
    for (offset, limit) in [(0, 1), (0, 5), (1, 1), (0, 0)] {
      var plan = store.plan("Person", predicate)
      (plan.offset, plan.limit) = (offset, limit)
      run.expectEqual(
        try store.fetch(plan).map(\.key), Array(found.dropFirst(offset).prefix(limit)),
        "the key of the person with the code c1 with offset \(offset) and limit \(limit)")
    }
  }

  private static func compositeLookups(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let key = try store.keys("Person", 1)[0]
    try store.save(graph) { $0.insert("Person", key, ["name": .string("A"), "city": .string("Bergen"), "age": .int16(77)]) }
    func both(_ city: StoreValue, _ age: StoreValue) -> QueryExpression { .and([lookup("city", city), lookup("age", age)]) }
    for row in graph.rows("Person").values.sorted(by: { $0.key < $1.key }) {
      let slots = store.entity("Person")
      let (city, age) = (row[slots.slot(named: "city")!], row[slots.slot(named: "age")!])
      if city != .null && age != .null { try ask(both(city, age), "Person", store, graph) }
    }
    try ask(both(.string("Bergen"), .int16(77)), "Person", store, graph)
    try ask(.and([lookup("age", .int16(77)), lookup("city", .string("Bergen"))]), "Person", store, graph)
    for (city, age) in [("Bergen", 78), ("bergen", 77), ("Bergen ", 77), ("", 77)] as [(String, Int16)] {
      try ask(both(.string(city), .int16(age)), "Person", store, graph)
    }
    try store.save(graph) { $0.update("Person", key, ["age": .int16(78)]) }
    for age in [77, 78] as [Int16] { try ask(both(.string("Bergen"), .int16(age)), "Person", store, graph) }
  }

  private static func lookup(_ name: String, _ value: StoreValue) -> QueryExpression {
    .comparison(.property(PropertyPath(name)), .equalTo, .constant(value), [])
  }

  private static func uniqueLookupsAfterChanges(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let key = try store.keys("Person", 1)[0]
    try store.save(graph) { edit in
      edit.update("Person", people[0], ["code": .string("new")])
      edit.update("Person", people[1], ["code": .null])
      edit.update("Person", people[3], ["name": .string("renamed")])
      edit.delete("Person", people[4])
      edit.insert("Person", key, ["name": .string("inserted"), "code": .string("inserted"), "number": .int64(7)])
    }
    for code in ["c0", "new", "c1", "c3", "c4", "inserted", "c6"] { try ask(lookup("code", .string(code)), "Person", store, graph) }
    for number in [0, 7, 30, 40, 60] as [Int64] { try ask(lookup("number", .int64(number)), "Person", store, graph) }
  }

  /// Texts that are equal only after normalisation, and numbers at the limits of their types.
  private static func unusualUniqueLookups(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), graph = ExpectedGraph(store)
    let codes = ConformanceValues.values(of: .string) + ConformanceValues.unusual(of: .string)
    let numbers = ConformanceValues.values(of: .integer64)
    for (place, code) in codes.enumerated() {
      let key = try store.keys("Person", 1)[0]
      var values = ["name": StoreValue.string("Person \(place)"), "code": code]
      if place < numbers.count { values["number"] = numbers[place] }
      do { try store.save(graph) { $0.insert("Person", key, values) } } catch let error as StoreError where error.code == .unstorableValue {
      }
    }
    for code in ConformanceValues.constants(of: .string, run.harness.capabilities) { try ask(lookup("code", code), "Person", store, graph) }
    for number in ConformanceValues.constants(of: .integer64, run.harness.capabilities) {
      try ask(lookup("number", number), "Person", store, graph)
    }
  }

  private static func countsByType(_ type: AttributeType, _ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.samples(store)
    let path = QueryExpression.property(PropertyPath(ConformanceModel.attributeName(type)))
    for op in [ComparisonOperator.equalTo, .notEqualTo] {
      for constant in ConformanceValues.constants(of: type, run.harness.capabilities) {
        let predicate = QueryExpression.comparison(path, op, .constant(constant), [])
        var plan = store.plan("Sample", predicate)
        plan.output = .count
        let expected = try matching(predicate, "Sample", store, graph).count
        run.expectEqual(try store.fetch(plan).map { $0[0] }, [.int64(Int64(expected))], "the count of samples where \(predicate)")
      }
    }
  }

  private static func countsWithPredicate(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for name in ["Person 0", "Person 3", "missing"] {
      let predicate = lookup("name", .string(name))
      var plan = store.plan("Person", predicate)
      plan.output = .count
      let got = try store.fetch(plan)
      let expected = try matching(predicate, "Person", store, graph).count
      run.expectEqual(got.map { $0[0] }, [.int64(Int64(expected))], "the count of people named \(name)")
    }
  }
}
