extension FetchedPropertyDescription {
  /// The query of the property's request; nil if every object matches.
  ///
  /// - Parameter source: Returns the value at a key path of the object that has the property.
  /// - Throws: A ``PredicateProblem`` if a query can't have the predicate; the errors of the closure.
  package func query(in model: ManagedObjectModel, source: (_ path: [String]) throws -> PredicateQuery.Value) throws -> QueryExpression? {
    guard let text = fetchRequest.predicateFormat else { return nil }
    guard let entity = model.entity(named: fetchRequest.entity) else {
      throw PredicateProblem("The model has no entity \(fetchRequest.entity).")
    }
    return try PredicateQuery.query(text, entity: entity, model: model) { variable, path in
      guard variable == "FETCH_SOURCE" else { throw PredicateProblem("The variable $\(variable) has no value in a fetched property.") }
      return try source(path)
    }
  }

  /// Why the objects can't be fetched; nil if they can. Doesn't compare the types of values.
  package func problem(of owner: ManagedObjectModel.Entity, in model: ManagedObjectModel) -> String? {
    do {
      guard let entity = model.entity(named: fetchRequest.entity) else { return "The model has no entity \(fetchRequest.entity)." }
      if let query = try query(in: model, source: { try owner.kind(of: $0, in: model) }) {
        _ = try RowPredicate(query, entity: entity, model: model)
      }
      return nil
    } catch {
      return switch error {
      case let error as PredicateProblem: error.reason
      case let error as QueryError: error.reason
      default: "\(error)"
      }
    }
  }
}

extension ManagedObjectModel.Entity {
  /// Nil or a list of nil, as the property at the end of a key path has one value or several.
  fileprivate func kind(of path: [String], in model: ManagedObjectModel) throws -> PredicateQuery.Value {
    var (entity, isList, rest) = (self, false, path[...])
    while let name = rest.popFirst() {
      switch entity.property(named: name) {
      case .relationship(let relationship)?, .transientRelationship(let relationship)?:
        entity = model.destination(of: relationship)
        if relationship.isToMany && rest == ["@count"] { return isList ? .list([.null]) : .single(.null) }
        if relationship.isToMany { isList = true }
      case .composite?:
        guard let element = rest.popFirst() else { throw PredicateProblem("\(entity.name).\(name) is composite. Name an element.") }
        rest = ["\(name).\(element)"] + rest
      case .attribute?, .transient?:
        if rest.isEmpty { return isList ? .list([.null]) : .single(.null) }
        throw PredicateProblem("\(entity.name).\(name) isn't a relationship.")
      case .fetched?, nil: throw PredicateProblem("\(entity.name) has no attribute or relationship \(name).")
      }
    }
    return isList ? .list([.null]) : .single(.null)
  }
}
