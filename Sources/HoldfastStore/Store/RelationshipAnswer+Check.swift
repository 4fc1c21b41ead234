extension RelationshipAnswer {
  /// Checks that the answer matches a request.
  ///
  /// The framework checks each answer. A store that reads the answers of another store calls this before it uses them.
  ///
  /// - Parameters:
  ///   - request: The request that was answered.
  ///   - path: The store's location, for the error; nil if unknown. Evaluated only for an error.
  ///   - isOrdered: Whether order keys are needed.
  /// - Throws: ``StoreError`` with code ``StoreError/Code/damaged`` if it doesn't.
  public func check(_ request: RelationshipRequest, path: @autoclosure () -> String?, isOrdered: Bool) throws(StoreError) {
    func damaged(_ reason: String) -> StoreError {
      StoreError(.damaged, operation: "read a relationship", path: path(), reason: reason)
    }
    guard offsets.count == request.sources.count + 1 else {
      throw damaged("The store answered for \(offsets.count - 1) objects instead of \(request.sources.count) (rule L1).")
    }
    if isOrdered, orderKeys?.count != targets.count {
      throw damaged("The store didn't return an order key for each object of an ordered relationship (rule L5).")
    }
    if let orderKeys, orderKeys.count != targets.count {
      throw damaged("The store returned \(orderKeys.count) order keys of \(targets.count) objects (rule L5).")
    }
    if let entities, entities.count != targets.count {
      throw damaged("The store returned \(entities.count) entities of \(targets.count) objects (rule L1).")
    }
    for place in request.sources.indices where offsets[place] > offsets[place + 1] {
      throw damaged("The offsets in the store's answer aren't ascending (rule L1).")
    }
  }
}
