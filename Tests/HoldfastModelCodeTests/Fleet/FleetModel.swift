import Foundation
import Holdfast

/// A model with fetch request templates. What the generator writes for it is in `FleetModelClasses.swift`.
enum FleetModel {
  /// The predicate of each template, by its name.
  static let predicates: [(name: String, text: String)] = [
    ("named", "name == $name"), ("coded", "code = $code"), ("notCoded", "code != $code"), ("uncoded", "code == nil"),
    ("heavy", "tons > $tons AND NOT isSold == YES"), ("light", "5 >= tons"), ("long", "length >= 100.5 || length == 12"),
    ("between", "tons BETWEEN $range"), ("betweenTwo", "tons BETWEEN {3, $maximum} AND name != \"\""), ("crews", "crew IN {1, $more, nil}"),
    ("codes", "code IN $codes"), ("begins", "name BEGINSWITH[c] $start"), ("ends", "name ENDSWITH 'a'"),
    ("containing", "code CONTAINS[cd] $part"), ("equalText", "name ==[c] \"BELLA\" OR code !=[cd] $code"), ("sold", "isSold == 1"),
    ("priced", "price == 0.1 OR price > 1000000"), ("launchedSince", "launched >= $date"),
    ("launchedAtStart", "launched == CAST(86400.000000, \"NSDate\")"), ("registered", "registration == $registration"),
    ("atPier", "berth.pier == $pier AND berth.number < 4"), ("withoutBerth", "berth == nil"), ("of", "home == $port"),
    ("homeless", "home == NIL"), ("ofPorts", "home IN $ports"), ("fromCountry", "home.country == $country"), ("itself", "SELF == $ship"),
    ("others", "NOT (SELF IN $ships)"), ("travelled", "ANY voyages.miles > $miles"), ("idle", "NONE voyages.miles > 0"),
    ("modest", "ALL voyages.miles BETWEEN {1, 20}"), ("busy", "voyages.@count > $count"), ("unused", "voyages.@count == 0"),
    ("visiting", "ANY voyages.stops.name == $name"), ("onVoyage", "voyages CONTAINS $voyage"), ("onThisVoyage", "$voyage IN voyages"),
    ("sameNames", "name == home.name"), ("smallCrew", "home.ships.@count < voyages.@count"),
    ("either", "(name == $a OR name == $b) AND (tons < 3 OR tons > 4)"), ("twice", "name == $text OR code == $text"),
    ("keywords", "name == $default OR name == $Date OR name == $request"), ("everything", "TRUEPREDICATE"),
    ("nothing", "name == $name AND FALSEPREDICATE"), ("kept", "name BEGINSWITH 'n' OR TRUEPREDICATE"),
    ("likeStart", "name LIKE 'B*'"), ("likeEnd", "code LIKE '**lo'"), ("likeAnywhere", "name LIKE[cd] '*EL*'"),
    ("likeWord", "name LIKE[c] 'bella'"), ("likeAny", "code LIKE '*'"), ("unnamed", "name == nil OR tons > 2"),
    ("namedLight", "nil != name AND tons < 3"),
    ("far", "SUBQUERY(voyages, $v, $v.miles > $miles AND $v.stops.@count > 0).@count > 0"),
    ("calm", "0 == SUBQUERY(voyages, $v, $v.miles >= 5 OR ANY $v.stops.name == 'Oslo').@count"),
    ("toPort", "SUBQUERY(voyages, $v, SUBQUERY($v.stops, $s, $s.name == $name).@count != 0).@count >= 1"),
    ("stopping", "SUBQUERY(voyages.stops, $s, $s.name BEGINSWITH 'B').@count > 0"),
    ("unvisited", "SUBQUERY(home.visits, $v, TRUEPREDICATE).@count < 1"),
  ]

  static func model() throws -> ManagedObjectModel {
    var templates = predicates.map { FetchRequestDescription($0.name, entity: "Ship", predicateFormat: $0.text) }
    var limited = FetchRequestDescription("limited", entity: "Ship", predicateFormat: "tons > 0")
    (limited.fetchLimit, limited.includesSubentities, limited.includesPendingChanges) = (2, false, false)
    var counted = FetchRequestDescription("class", entity: "Tanker", predicateFormat: "hull != nil")
    counted.resultType = .count
    templates += [limited, counted, FetchRequestDescription("all ports", entity: "Port")]
    return try ManagedObjectModel(
      entities: [ship, EntityDescription("Tanker", superentity: "Ship", attributes: [text("hull")]), port, voyage],
      composites: [
        CompositeDescription(
          "Berth", [AttributeDescription("number", .integer16), AttributeDescription("pier", .string, isOptional: true)])
      ],
      fetchRequestTemplates: templates)
  }

  private static func fetched(_ name: String, _ entity: String, _ predicate: String?) -> FetchedPropertyDescription {
    FetchedPropertyDescription(name, FetchRequestDescription("fetch", entity: entity, predicateFormat: predicate))
  }

  private static func text(_ name: String) -> AttributeDescription { AttributeDescription(name, .string, isOptional: true) }

  private static let ship = EntityDescription(
    "Ship",
    attributes: [
      AttributeDescription("name", .string, default: .string("")), text("code"),
      AttributeDescription("tons", .integer32, default: .int32(0)),
      AttributeDescription("length", .float, isOptional: true), AttributeDescription("price", .decimal, isOptional: true),
      AttributeDescription("launched", .date, isOptional: true), AttributeDescription("registration", .uuid, isOptional: true),
      AttributeDescription("isSold", .boolean, default: .bool(false)), AttributeDescription("crew", .integer64, isOptional: true),
      .composite("berth", "Berth", isOptional: true),
    ], relationships: [.toOne("home", to: "Port", inverse: "ships"), .toMany("voyages", to: "Voyage", inverse: "ship")],
    fetchedProperties: [
      fetched("compatriots", "Ship", "home.country == $FETCH_SOURCE.home.country AND SELF != $FETCH_SOURCE"),
      fetched("init", "Port", nil), fetched("puzzles", "Ship", "name MATCHES $FETCH_SOURCE.code"),
      fetched("typos", "Ship", "nam == $FETCH_SOURCE.name"), fetched("others", "Ship", "name == $FETCH_SOURCE.nam"),
      fetched("strangers", "Ship", "name == $name"),
    ])

  private static let port = EntityDescription(
    "Port", attributes: [AttributeDescription("name", .string, default: .string("")), text("country")],
    relationships: [.toMany("ships", to: "Ship", inverse: "home"), .toMany("visits", to: "Voyage", inverse: "stops")],
    fetchedProperties: [fetched("visitors", "Ship", "SELF IN $FETCH_SOURCE.visits.ship AND home != $FETCH_SOURCE")])

  private static let voyage = EntityDescription(
    "Voyage", attributes: [AttributeDescription("miles", .double, default: .double(0))],
    relationships: [
      .toOne("ship", to: "Ship", inverse: "voyages"), .toMany("stops", to: "Port", inverse: "visits", isOrdered: true),
    ])
}
