import HoldfastStore

extension IncrementalStore {
  /// Reads the destinations of a to-many relationship, for any number of sources.
  ///
  /// If an answer is too large for the store, sends two smaller requests, as the coordinator does.
  ///
  /// - Parameters:
  ///   - isOrdered: Whether order keys are needed. Defaults to false.
  ///   - body: Receives each source, an answer, and the positions of the source's destinations in the answer.
  func readDestinations(
    _ request: RelationshipRequest, in view: any ReadView, options: RequestOptions, isOrdered: Bool = false,
    _ body: (_ source: ObjectKey, _ answer: RelationshipAnswer, _ positions: Range<Int>) -> Void
  ) throws {
    for start in stride(from: 0, to: request.sources.count, by: 1_024) {
      let sources = request.sources[start..<min(start + 1_024, request.sources.count)]
      try readDestinations(of: sources, request, in: view, options: options, isOrdered: isOrdered, body)
    }
  }

  private func readDestinations(
    of sources: ArraySlice<ObjectKey>, _ request: RelationshipRequest, in view: any ReadView, options: RequestOptions, isOrdered: Bool,
    _ body: (_ source: ObjectKey, _ answer: RelationshipAnswer, _ positions: Range<Int>) -> Void
  ) throws {
    var part = request
    part.sources = Array(sources)
    let answer: RelationshipAnswer
    do { answer = try relationships(part, in: view, options: options) } catch let error as StoreError
      where error.code == .tooLarge && sources.count > 1
    {
      let middle = sources.startIndex + sources.count / 2
      try readDestinations(of: sources[..<middle], request, in: view, options: options, isOrdered: isOrdered, body)
      return try readDestinations(of: sources[middle...], request, in: view, options: options, isOrdered: isOrdered, body)
    }
    try answer.check(part, path: nil, isOrdered: isOrdered)
    for (place, source) in sources.enumerated() {
      body(source, answer, Int(answer.offsets[place])..<Int(answer.offsets[place + 1]))
    }
  }
}
